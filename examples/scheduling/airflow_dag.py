"""An Airflow DAG (2.4 or later): ingest and sync, then `verify`, whose drift fails the run.

Install chunksink in a virtual environment of its own: Airflow pins many libraries. Set CHUNKSINK and FOLDER below.
"""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator

CHUNKSINK = "/opt/chunksink/bin/chunksink"
FOLDER = "/srv/search"

with DAG(
    "search_index",
    schedule="*/15 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"cwd": FOLDER, "append_env": True},
) as dag:
    # Exit codes 3 and 6: some files are invalid, or some documents were refused; the rest is in the index. A retry
    # continues where the last attempt stopped.
    sync = BashOperator(
        task_id="sync",
        bash_command=f"{CHUNKSINK} ingest documents --prune --sync || case $? in 3|6) ;; *) exit 1 ;; esac",
        retries=3,
        retry_delay=timedelta(minutes=2),
    )
    # Exit code 4: an engine does not have what the chunks say. `chunksink verify --repair` fixes it. Exit code 3: some
    # sources are held, because of the invalid files that `sync` tolerates.
    verify = BashOperator(
        task_id="verify",
        bash_command=f"{CHUNKSINK} verify || case $? in 3) ;; *) exit 1 ;; esac",
        retries=0,
    )
    sync >> verify
