# redis-py as an application uses it: a pipeline is a transaction unless told otherwise. Usage: redis_py.py HOST PORT
import sys

import redis

c = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]), decode_responses=True, client_name="shop")


def refused(function, *args, part):
    try:
        function(*args)
    except redis.ResponseError as e:
        assert part in str(e), e
        return
    raise AssertionError(f"not refused: {args}")


assert [c.incr("py") for _ in range(3)] == [1, 2, 3]
p = c.pipeline()  # transaction=True
for _ in range(500):
    p.incr("py")
p.incr("default").incr("other").exists("py", "nothing").ping().ttl("py")
got = p.execute()
assert got[:500] == list(range(4, 504)), got[:5]
assert got[500:] == [100001, 1, 1, True, -1], got[500:]
assert len(set(c.pipeline(transaction=True).incr("default").incr("default").execute())) == 2
assert c.pipeline(transaction=False).incr("py").incr("py").execute() == [504, 505]

p = c.pipeline()
p.incr("py").execute_command("NO.SUCH", "x").incr("py")
refused(p.execute, part="unknown command")
assert c.get("py") == "506", "nothing of it was run"
p = c.pipeline()
p.incr("py").execute_command("INCRBY", "py", "-1").incr("py")
got = p.execute(raise_on_error=False)
assert got[0] == 506 and got[2] == 507 and isinstance(got[1], redis.ResponseError), got
refused(c.transaction, lambda pipe: pipe.incr("py"), "py", part="WATCH is not supported")

assert c.setnx("from", 41) and not c.setnx("from", 7) and c.incr("from") == 42
refused(c.expire, "from", 10, part="does not expire")
assert c.exists("from", "py") == 2 and c.ttl("from") == -1 and c.pttl("nothing") == -2
assert c.delete("from", "nothing") == 1 and not c.exists("from")
refused(c.incr, "from", part="was deleted")
assert c.dbsize() == 3, c.dbsize()
seconds, micros = c.time()
assert seconds > 1_600_000_000 and 0 <= micros < 1_000_000
assert c.client_getname() == "shop" and c.client_info()["name"] == "shop"
assert [line["id"] for line in c.client_list()] == [str(c.client_id())]
assert c.info("server")["firn_version"] and c.info()["db0"]["keys"] == 3
refused(redis.Redis(host=sys.argv[1], port=int(sys.argv[2]), db=1).ping, part="database 0 only")
print("redis-py: as expected")
