"""
Faults of the stores of a quorum, one store at a time: killed, stopped for some seconds, emptied. One that is another
store afterwards, or has forgotten, has to be refused, and then takes part again by `firn admin admit` while the others serve.
"""
import subprocess
import time

from world import LIMIT, wait_for


class Acceptors:
    def __init__(self, engine, firn, over):
        self.engine, self.firn, self.over = engine, firn, over
        self.files = not engine.endpoints

    def faults(self):
        """(name, function of the dice)"""
        if self.files:  # a file that is killed or stopped is one that somebody else keeps locked
            return [("store: one of the quorum locked", self.pause), ("store: one of the quorum emptied, admitted", self.wipe)]
        strict = not self.engine.options
        return [("store: one of the quorum killed" + (", refused, admitted as it is" if strict else ""), self.kill),
                ("store: one of the quorum stopped", self.pause),
                ("store: one of the quorum wiped, refused, admitted", self.wipe)]

    def kill(self, rng):
        i = rng.randrange(len(self.engine.node))
        self.engine.kill(i)
        self.over.wait(rng.uniform(0.2, 1.5))
        self.engine.restart(i)
        if not self.engine.options:  # it has all it had, but no member can know that
            self.readmit(i, "--as-is")

    def pause(self, rng):
        i = rng.randrange(len(self.engine.node))
        self.engine.pause(i)
        time.sleep(rng.uniform(2, 4))  # longer than a call may take
        self.engine.resume(i)

    def wipe(self, rng):
        i = rng.randrange(len(self.engine.node))
        self.engine.wipe(i)
        self.over.wait(rng.uniform(0, 1))
        self.readmit(i)

    def readmit(self, i, *how):
        mine = self.engine.node[i].url()
        wait_for(f"{mine} to be refused", lambda: f"{mine}: refused: " in self.admin("doctor")[1])
        # Others are cut off and killed meanwhile, and a step may be too slow for a busy machine: it can be done again.
        wait_for(f"{mine} to be admitted", lambda: self.admin("admit", *how, mine)[0] == 0)
        wait_for(f"{mine} to take part", lambda: f"{mine}: member" in self.admin("doctor")[1])

    def admin(self, *words):
        done = subprocess.run([self.firn, "admin", *words, "--store", self.engine.url()], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT, check=False)
        return done.returncode, done.stdout.decode()
