"""A forked child shares descriptors and frozen locks with its parent: it lets its parent's bells and watch alone."""

import subprocess
import sys

FORKED = """
import os, signal, sys
from treppe.job import NewJob
from treppe.store.bell import Bell
from treppe.store.sqlite import SQLiteStore

store, bell = SQLiteStore(sys.argv[1], durable=False), Bell()
store.migrate()
store.wait(0.0, bell)  # from now on the parent has a bell to be rung, and a watch
watch = store._waiters.watch

def told():  # by the kernel, and not looked at yet
    return watch.fd is not None and Bell().wait(0.0, watch.fd)

def put(id):
    store.put([NewJob(id, "task", "q")])

def in_a_child(act):
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends it, should it wait for ever
        act()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def forked(tmp_path, script):
    subprocess.run([sys.executable, "-c", FORKED + script, str(tmp_path / "jobs.db")], check=True, timeout=60)


def test_a_child_rings_its_own_bells_and_not_its_parents(tmp_path):
    forked(
        tmp_path,
        """
def act():
    own = Bell()
    store.wait(0.0, own)
    put("from the child")
    assert own.rings

in_a_child(act)
assert not bell.wait(0.0)
put("from the parent")
assert bell.wait(0.0) and bell.rings
""",
    )


def test_a_bell_whose_lock_was_held_at_the_fork_keeps_no_child_waiting(tmp_path):
    forked(
        tmp_path,
        """
with bell._lock:
    in_a_child(lambda: put("from the child"))
assert store.get("from the child") is not None
""",
    )


def test_what_the_kernel_tells_the_parent_is_not_read_by_a_child(tmp_path):
    forked(
        tmp_path,
        """
def act():
    other = SQLiteStore(sys.argv[1], durable=False)
    other.put([NewJob("from the child", "task", "q")])
    assert watch.fd is None or told()
    store.wait(0.01, Bell())
    store.close()

assert not told()
in_a_child(act)
assert watch.fd is None or told()
""",
    )
