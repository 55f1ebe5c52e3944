"""
The store in a file. There is no server, so nothing can be killed but its users; what a paused server is to the
other stores is here another process that keeps the file locked.
"""
import glob
import os
import sqlite3


class Sqlite:
    endpoints = ()

    def __init__(self, folder, nodes=1):
        del nodes
        self.folder = folder
        self.locks = []

    @staticmethod
    def missing():
        return None

    def start(self):
        pass

    def stop(self):
        self.resume()

    def file(self, path):
        return os.path.join(self.folder, path + ".db")

    def url(self, path="firn", endpoints=None):
        del endpoints
        return "sqlite:" + self.file(path)

    def pause(self, i=None):
        """No one else can write to any file until resume()."""
        del i
        for name in glob.glob(self.file("*")):
            lock = sqlite3.connect(name, isolation_level=None, timeout=30)
            self.locks.append(lock)
            lock.execute("BEGIN IMMEDIATE")

    def resume(self, i=None):
        del i
        while self.locks:
            self.locks.pop().close()

    def wipe(self):
        """In one transaction: a file that is taken away while others use it can come back by its log."""
        for name in glob.glob(self.file("*")):
            db = sqlite3.connect(name, timeout=30)
            with db:
                db.execute("DELETE FROM register")
            db.close()

    def snapshot(self, to):
        os.mkdir(to)
        for name in glob.glob(self.file("*")):
            frm, copy = sqlite3.connect(name), sqlite3.connect(os.path.join(to, os.path.basename(name)))
            frm.backup(copy)
            frm.close()
            copy.close()

    def restore(self, frm):
        """The old files under the old names, as `mv` puts them there."""
        for name in glob.glob(self.file("*")):
            for tail in ("-wal", "-shm"):
                if os.path.exists(name + tail):
                    os.unlink(name + tail)
            with open(os.path.join(frm, os.path.basename(name)), "rb") as f:
                content = f.read()
            with open(name + ".new", "wb") as f:
                f.write(content)
            os.rename(name + ".new", name)

    def delete(self, path, key):
        db = sqlite3.connect(self.file(path), timeout=30)
        with db:
            db.execute("DELETE FROM register WHERE key = ?", (key.decode(),))
        db.close()

    def keys(self, path):
        db = sqlite3.connect(self.file(path), timeout=30)
        found = [row[0].encode() for row in db.execute("SELECT key FROM register ORDER BY key")]
        db.close()
        return found
