# The token of user 456, which firn up shop has signed, for the commands below; T2 is that of user 457.
T="Authorization: Bearer $(cat var/shop/token-456)" T2="Authorization: Bearer $(cat var/shop/token-457)"

# Five services behind one port; /api/orders is /orders at its service.
for s in users orders products payments notifications; do curl -s 127.0.0.1:9000/api/$s -H "$T"; echo; done

# The cache: /api/products/123 is asked of its service once in 300 s, for both gateways; the key is in Redis.
for _ in 1 2; do curl -si 127.0.0.1:9000/api/products/123 -H 'Host: shop.example' | grep -i '^X-Cache'; done
curl -si 127.0.0.1:9010/api/products/123 -H 'Host: shop.example' | grep -i '^X-Cache'
redis-cli -u redis://127.0.0.1:9023 TTL cache:products:123

# Who has no token gets 401. A service gets the token's user, and never an X-User-ID of the client's own.
curl -si 127.0.0.1:9000/api/orders; echo
curl -s 127.0.0.1:9000/api/headers -H "$T" -H 'X-User-ID: 1'; echo

# A new order gets its ID from firnd; repeated with the same key, at the other gateway, it is the same order.
curl -s 127.0.0.1:9000/api/orders -H "$T" -H 'Idempotency-Key: tour-1' -d '{"product_id":"123","amount":10000}'; echo
curl -s 127.0.0.1:9010/api/orders -H "$T" -H 'Idempotency-Key: tour-1' -d '{"product_id":"123","amount":10000}'; echo

# JSON bodies: what a product costs the shop stays inside, and stock is called available. gzip for who takes it.
curl -s 127.0.0.1:9014/products/123; echo
curl -s 127.0.0.1:9000/api/products/123; echo
curl -s -D - -o /dev/null 127.0.0.1:9000/api/products -H 'Accept-Encoding: gzip' | grep -i '^Content-Encoding'

# One request for several services, in the shape that web, mobile and partner clients want.
curl -s 127.0.0.1:9000/api/home -H "$T"; echo
curl -s 127.0.0.1:9000/api/home -H "$T" -H 'X-Client: mobile'; echo
curl -s 127.0.0.1:9000/partner/orders/123 -H "$T"; echo

# GraphQL: one query joins users, orders, products and payments; read-only, introspection for clients.
curl -s 127.0.0.1:9000/graphql -H "$T" -H 'Content-Type: application/json' -d '{"query":"{ me { name orders { id amount product { name } payments { status } } } }"}'; echo

# The circuit breaker: payments fails, then the gateway answers for it; when it is healed, it closes again.
curl -s -X POST '127.0.0.1:9015/admin/fail?status=500'; echo
for _ in 1 2 3 4 5 6 7; do curl -s -w ' %{http_code}\n' 127.0.0.1:9000/api/payments/123 -H "$T"; done
curl -s -X POST 127.0.0.1:9015/admin/heal; sleep 5; curl -s -w ' %{http_code}\n' 127.0.0.1:9000/api/payments/123 -H "$T"

# Faults on purpose, for who asks for them: 300 ms late, and 503.
curl -s -w ' %{http_code} after %{time_total} s\n' 127.0.0.1:9000/api/orders/123 -H "$T" -H 'X-Fault: yes'

# Canary: one of ten requests goes to the next version. A/B: who asks for variant b gets it.
for _ in $(seq 10); do curl -sI 127.0.0.1:9000/api/notifications -H "$T" | grep -i '^X-Served-By'; done | sort | uniq -c
curl -sI 127.0.0.1:9000/api/notifications -H "$T" -H 'X-Variant: b' | grep -i '^X-Served-By'

# A user has 100 requests per minute, at both gateways together: the next one is refused.
for _ in $(seq 50); do curl -s -w ' %{http_code}\n' -H "$T2" 127.0.0.1:9000/api/users/457 127.0.0.1:9010/api/users/457; done | sort | uniq -c
curl -si 127.0.0.1:9000/api/users/457 -H "$T2"; echo

# One line of JSON per request, with the same request ID at the gateway and at the service.
id=$(curl -si 127.0.0.1:9000/api/users/456 -H "$T" | tr -d '\r' | sed -n 's/^X-Request-ID: //p')
until grep -q "$id" var/shop/gateway-1.log; do sleep 0.1; done; grep -h "$id" var/shop/*.log
grep -h '"request_body"' var/shop/gateway-1.log | tail -1

# Numbers for Prometheus; http://127.0.0.1:9001/ shows them on a page.
curl -s 127.0.0.1:9001/metrics | grep '^firn_proxy_requests_total'
