"""Parameters go to SQLite so that every Python takes them without a warning."""

import sqlite3

from treppe import Context, Treppe
from treppe.settle import AFTER_LAPSE
from treppe.store.sqlite import SQLiteStore, database
from treppe.store.sqlite.database import ByName
from treppe.testing.kit import drain


class Strict(sqlite3.Connection):
    """Refuses what Python 3.12.0 to 3.12.3 warn of."""

    def execute(self, sql, parameters=(), /):
        assert "?1" not in sql or isinstance(parameters, dict)
        return super().execute(sql, parameters)

    def executemany(self, sql, rows, /):
        rows = list(rows)
        assert "?1" not in sql or all(isinstance(row, dict) for row in rows)
        return super().executemany(sql, rows)


class StrictByName(ByName, Strict):
    pass


def test_numbered_parameters_are_given_by_name_where_python_takes_them_for_names(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "CONNECTION", StrictByName)
    store = SQLiteStore(tmp_path / "jobs.db", durable=False)
    store.migrate()
    app = Treppe(store)

    @app.task(name="task", queue="q", key="key")
    def task(ctx: Context, key: str) -> str:
        return ctx.step("once", str.upper, key)

    for n in range(20):
        task.using(id=f"job-{n}").enqueue("ab"[n % 2])
    assert drain(app).done == 20
    store.upkeep(AFTER_LAPSE)
    assert [store.get(f"job-{n}").result for n in range(2)] == [b'"A"', b'"B"']
    store.close()
