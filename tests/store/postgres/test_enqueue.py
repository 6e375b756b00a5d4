"""``treppe.enqueue()``: jobs from whatever speaks SQL, in its own transaction."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from treppe.app import Treppe
from treppe.app.mirror import mirror
from treppe.config import Destination
from treppe.job import Repeat, State
from treppe.store.postgres import PostgresStore

ROOT = Path(__file__).parents[3]
PG = 8  # the major version of Node's driver


@pytest.fixture
def store(treppe_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(treppe_url)
    yield store
    store.close()


@pytest.fixture
def app(store: PostgresStore) -> Treppe:
    app = Treppe(store)

    @app.task(name="shop.send_mail", queue="mail", attempts=7, crashes=2, key="customer", priority=60, deadline="1h")
    def send_mail(to: str, customer: str | None = None) -> None: ...

    mirror(store, app.tasks, [Destination("crm", "https://crm.example/in", queue="crm-api")])
    return app


@pytest.fixture
def theirs(treppe_url: str) -> Iterator[psycopg.Connection]:
    """Somebody else's connection."""
    with psycopg.connect(treppe_url) as connection:
        yield connection


def enqueue(theirs: psycopg.Connection, *arguments: object) -> tuple[int, str]:
    marks = ", ".join("%s" for _ in arguments)
    return theirs.execute(f"SELECT seq, outcome FROM treppe.enqueue({marks})", arguments).fetchone()


def test_a_job_is_like_one_that_the_task_itself_enqueues(app, store, theirs):
    seq, outcome = enqueue(theirs, "from-sql", "shop.send_mail", '{"to":"ada@example.org","customer":"7"}')
    theirs.commit()
    app.tasks["shop.send_mail"].using(id="from-python").enqueue("ada@example.org", "7")
    sql, python = store.get("from-sql"), store.get("from-python")
    assert (seq, outcome) == (sql.seq, "new")
    own = {"seq", "id", "created_at", "due_at", "run_at", "deadline_at", "expires_at", "behind"}
    for field in set(sql.__struct_fields__) - own:
        assert getattr(sql, field) == getattr(python, field), field
    for length in ("deadline_at", "expires_at", "run_at"):
        assert getattr(sql, length) - sql.due_at == pytest.approx(getattr(python, length) - python.due_at)
    assert (store.backlog().accepted, store.backlog().open) == (2, 2)


def test_the_same_work_once_more_is_a_duplicate_from_sql_and_from_python(app, store, theirs):
    seq, _ = enqueue(theirs, "a", "shop.send_mail", '{"to":"ada@example.org"}')
    assert enqueue(theirs, "a", "shop.send_mail", '{"to":"ada@example.org"}') == (seq, "duplicate")
    theirs.commit()
    placed = app.tasks["shop.send_mail"].using(id="a").enqueue("ada@example.org")
    assert (placed.seq, placed.duplicate) == (seq, True)


@pytest.mark.parametrize(
    "other",
    [("a", "shop.other", "{}", "mail"), ("a", "shop.send_mail", "{}", "other"), ("a", "shop.send_mail", '{"to":"b"}')],
    ids=["task", "queue", "content"],
)
def test_other_work_under_the_same_id_is_a_conflict_and_the_transaction_goes_on(app, store, theirs, other):
    seq, _ = enqueue(theirs, "a", "shop.send_mail", "{}")
    assert enqueue(theirs, *other) == (seq, "conflict")
    assert enqueue(theirs, "b", "shop.send_mail", "{}")[1] == "new"
    theirs.commit()
    assert store.backlog().open == 2


def test_a_rollback_leaves_nothing(app, store, theirs):
    enqueue(theirs, "a", "shop.send_mail", "{}")
    theirs.rollback()
    assert store.get("a") is None
    assert store.backlog().accepted == 0


def test_a_task_that_is_not_known_is_never_repeated_by_itself(store, theirs):
    enqueue(theirs, "a", "Shop.Nobody", "{}")
    theirs.commit()
    job = store.get("a")
    assert (job.task, job.queue, job.repeat, job.attempts) == ("Shop.Nobody", "shop.nobody", Repeat.ASK, 5)


def test_a_destination_takes_jobs_too(app, store, theirs):
    enqueue(theirs, "a", "destination:crm", '{"order": 42}')
    theirs.commit()
    job = store.get("a")
    assert (job.queue, job.payload, job.content_type) == ("crm-api", b'{"order": 42}', "application/json")


def test_queue_key_and_due_time_may_be_given(app, store, theirs):
    theirs.execute(
        "SELECT treppe.enqueue('a', 'shop.send_mail', queue => 'night', key => 'k', due => now() + interval '1 hour')"
    )
    theirs.commit()
    job = store.get("a")
    assert (job.queue, job.key, job.payload, job.state) == ("night", "k", b"{}", State.WAITING)
    assert job.due_at - job.created_at == pytest.approx(3600, abs=5)
    assert store.backlog().total("scheduled") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("", "t", "{}"), "the id must be text of 1 to 255 characters"),
        (("x" * 256, "t", "{}"), "the id must be text of 1 to 255 characters"),
        ((None, "t", "{}"), "the id must be text of 1 to 255 characters"),
        (("a\nb", "t", "{}"), "without control characters"),
        (("a", "two words", "{}"), "without spaces"),
        (("a", "t", "{}", "No Queue"), '"No Queue" is no name of a queue'),
        (("a", "t", "{}", "q", ""), "the order key must be text"),
        (("a", "t", "[1]"), "one JSON object"),
        (("a", "t", None), "one JSON object"),
        (("a", "t", json.dumps({"x": "y" * 300_000})), "262144 are allowed"),
    ],
)
def test_what_cannot_be_enqueued_is_refused_with_a_sentence(store, theirs, arguments, sentence):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=sentence):
        enqueue(theirs, *arguments)


def test_the_settings_of_a_task_follow_its_code(app, store, theirs):
    again = Treppe(store)

    @again.task(name="shop.send_mail", queue="letters")
    def send_mail(to: str) -> None: ...

    mirror(store, again.tasks, [])
    enqueue(theirs, "a", "shop.send_mail", '{"to": "ada"}')
    theirs.commit()
    assert (store.get("a").queue, store.get("a").attempts) == ("letters", 5)


def test_a_trigger_enqueues_with_the_row_it_belongs_to(app, store, theirs):
    theirs.execute("CREATE TABLE orders (id int PRIMARY KEY, email text NOT NULL)")
    theirs.execute(
        """CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM treppe.enqueue('mail:' || NEW.id, 'shop.send_mail', json_build_object('to', NEW.email));
             RETURN NEW;
           END $$"""
    )
    theirs.execute("CREATE TRIGGER tell AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION tell()")
    theirs.commit()
    theirs.execute("INSERT INTO orders VALUES (1, 'ada@example.org'), (2, 'bob@example.org')")
    theirs.rollback()
    theirs.execute("INSERT INTO orders VALUES (3, 'cy@example.org')")
    theirs.commit()
    assert (store.get("mail:1"), store.get("mail:2")) == (None, None)
    assert json.loads(store.get("mail:3").payload) == {"to": "cy@example.org"}


def test_psql_enqueues(app, store, postgres18, treppe_url):
    script = "BEGIN;\nSELECT * FROM treppe.enqueue('a', 'shop.send_mail', '{\"to\": \"ada\"}');\nCOMMIT;\n"
    said = subprocess.run(
        [postgres18.programs / "psql", treppe_url, "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
        input=script, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert f"{store.get('a').seq}|new" in said


def test_node_enqueues_in_its_own_transaction(app, store, postgres18, treppe_url, node_with_pg):
    name = treppe_url.partition("?")[0].rpartition("/")[2]
    said = run_node(node_with_pg, postgres18.url(name))
    assert said == ["new", "duplicate", "conflict"]
    assert json.loads(store.get("from-node").payload) == {"to": "ada@example.org"}
    assert store.get("rolled-back") is None


@pytest.fixture(scope="session")
def node_with_pg() -> Path:
    """A folder with Node's driver for PostgreSQL, fetched once."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("there is no Node with npm on this machine")
    folder = ROOT / ".tools" / "node"
    if not (folder / "node_modules" / "pg").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", folder, f"pg@{PG}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            pytest.skip(f"npm could not fetch pg: {done.stderr.strip()[-200:]}")
    return folder


def run_node(folder: Path, url: str) -> list[str]:
    script = """
      const { Client } = require("pg");
      (async () => {
        const client = new Client({ connectionString: process.argv[1] });
        await client.connect();
        const enqueue = async (id, args) => (await client.query(
          "SELECT outcome FROM treppe.enqueue($1, $2, $3)", [id, "shop.send_mail", args])).rows[0].outcome;
        await client.query("BEGIN");
        console.log(await enqueue("from-node", { to: "ada@example.org" }));
        console.log(await enqueue("from-node", { to: "ada@example.org" }));
        console.log(await enqueue("from-node", { to: "bob@example.org" }));
        await client.query("COMMIT");
        await client.query("BEGIN");
        await enqueue("rolled-back", {});
        await client.query("ROLLBACK");
        await client.end();
      })();
    """
    environment = os.environ | {"NODE_PATH": str(folder / "node_modules")}
    done = subprocess.run(
        ["node", "-e", script, url], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_those_who_wait_are_told(app, store, theirs):
    listener = psycopg.connect(theirs.info.dsn, autocommit=True)
    with listener:
        listener.execute("LISTEN treppe")
        enqueue(theirs, "a", "shop.send_mail", "{}")
        enqueue(theirs, "b", "shop.send_mail", "{}")
        theirs.commit()
        assert [told.payload for told in listener.notifies(timeout=10, stop_after=1)] == ["mail"]
