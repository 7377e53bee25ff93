"""A Dagster asset that syncs the index, and `verify` as its check.

dagster dev -f dagster_assets.py

Settings come from the chunksink.toml of the folder in CHUNKSINK_CONFIG, or of the current one.
"""

import dagster

import chunksink


@dagster.asset
def search_index() -> dagster.MaterializeResult:
    """The search index, equal to the chunks. A failed engine or unreadable chunks fail the asset."""
    with chunksink.open() as index:
        report = index.sync()
    if report.status in ("failed", "held"):
        raise dagster.Failure(f"the sync ended with status {report.status}", metadata={"report": report.as_json()})
    return dagster.MaterializeResult(
        metadata={"sources": report.total.families, "written": report.written, "deleted": report.deleted}
    )


@dagster.asset_check(asset=search_index, blocking=True)
def index_matches_chunks() -> dagster.AssetCheckResult:
    """Read every engine and compare it with the chunks. Assets that depend on the index wait for this check."""
    with chunksink.open() as index:
        report = index.verify()
    return dagster.AssetCheckResult(passed=report.ok, metadata={"report": report.as_json()})


definitions = dagster.Definitions(
    assets=[search_index],
    asset_checks=[index_matches_chunks],
    schedules=[dagster.ScheduleDefinition(name="every_quarter_hour", target="*", cron_schedule="*/15 * * * *")],
)
