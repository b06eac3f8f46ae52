from airflow.providers.smtp.notifications.smtp import SmtpNotifier

NOTIFIED = {("nightly", "judge"), ("regression", "judge")}
MAIL = SmtpNotifier(
    to="streaming-team@example.org",
    from_email="aftershock@example.org",
    subject="{{ ti.dag_id }}: {{ ti.task_id }} failed",
    html_content="{{ exception | e }}",
)


def task_policy(task):
    if (task.dag.dag_id, task.task_id) in NOTIFIED:
        task.on_failure_callback = [*(task.on_failure_callback or []), MAIL]
