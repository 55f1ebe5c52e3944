# Five services behind one port. /api/products/123 is /products/123 at its service.
for s in users orders products payments notifications; do curl -s 127.0.0.1:9000/api/$s; echo; done
curl -si 127.0.0.1:9000/api/products/123; echo

# JSON bodies: what a product costs the shop stays inside, and stock is called available. gzip for who takes it.
curl -s 127.0.0.1:9014/products/123; echo
curl -s 127.0.0.1:9000/api/products/123; echo
curl -s -D - -o /dev/null 127.0.0.1:9000/api/products -H 'Accept-Encoding: gzip' | grep -i '^Content-Encoding'

# A new order gets its ID from firnd; repeated with the same key it is the same order.
curl -s 127.0.0.1:9000/api/orders -H 'Idempotency-Key: tour-1' -d '{"user_id":"user_456","amount":10000}'; echo
curl -s 127.0.0.1:9010/api/orders -H 'Idempotency-Key: tour-1' -d '{"user_id":"user_456","amount":10000}'; echo

# What a service gets: a client's own X-User-ID is dropped.
curl -s 127.0.0.1:9000/api/headers -H 'X-User-ID: 1'; echo

# One request for several services, in the shape that web, mobile and partner clients want.
curl -s 127.0.0.1:9000/api/home/456; echo
curl -s 127.0.0.1:9000/api/home/456 -H 'X-Client: mobile'; echo
curl -s 127.0.0.1:9000/partner/orders/123; echo

# The circuit breaker: payments fails, then the gateway answers for it; when it is healed, it closes again.
curl -s -X POST '127.0.0.1:9015/admin/fail?status=500'; echo
for i in 1 2 3 4 5 6 7; do curl -s -w ' %{http_code}\n' 127.0.0.1:9000/api/payments/123; done
curl -s -X POST 127.0.0.1:9015/admin/heal; sleep 3; curl -s -w ' %{http_code}\n' 127.0.0.1:9000/api/payments/123

# Faults on purpose, for who asks for them: 300 ms late, and 503.
curl -s -w ' %{http_code} after %{time_total} s\n' 127.0.0.1:9000/api/orders/123 -H 'X-Fault: yes'

# Canary: one of ten requests goes to the next version. A/B: who asks for variant b gets it.
for i in $(seq 20); do curl -sI 127.0.0.1:9000/api/notifications | grep -i '^X-Served-By'; done | sort | uniq -c
curl -sI 127.0.0.1:9000/api/notifications -H 'X-Variant: b' | grep -i '^X-Served-By'

# One line of JSON per request, with the same request ID at the gateway and at the service.
id=$(curl -si 127.0.0.1:9000/api/users/456 | tr -d '\r' | sed -n 's/^X-Request-ID: //p'); sleep 1; grep -h "$id" var/shop/*.log
