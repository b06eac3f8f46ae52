"""A spec has no place for a secret, and neither has a table: what is kept for years is safe to show."""

import re

import pytest

from experiments import spec
from experiments.documents.parsing import read_mapping
from experiments.errors import BadInput
from experiments.inventory import Inventory
from experiments.matrix import Matrix
from experiments.secrets import is_secretive
from results.tables.schema import TABLES

SECRETIVE = re.compile(r"pass(word|phrase)?$|secret|token|credential|api_?key|private", re.IGNORECASE)


def names(schema):
    """Every name of a field in a JSON schema, those of its definitions included."""
    if isinstance(schema, list):
        return {name for item in schema for name in names(item)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})) | {name for item in schema.values() for name in names(item)}


def test_no_field_of_a_spec_asks_for_a_secret():
    for model in (spec.Experiment, Matrix, Inventory):
        found = names(model.model_json_schema())
        assert found
        assert [name for name in found if SECRETIVE.search(name)] == []


def test_no_column_of_a_table_is_for_a_secret():
    columns = {field.name for schema in TABLES.values() for field in schema}
    assert [name for name in columns if SECRETIVE.search(name)] == []


JOB = {"name": "own-job", "program": "job.py", "inputs": {"a": {"file": "a.jsonl"}}}


def with_job(**fields):
    document = {"engine": {"recovery": "task"}, "load": {"mode": "rate", "rate": 10}}
    return spec.validate(document | {"name": "mine", "workload": JOB | fields})


def shown(mistake):
    return [secret for secret in ("hunter2", "12345678", "ter2") if secret in str(mistake)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "hunter2"),
        ("spark.hadoop.fs.s3a.access.key", "hunter2"),
        ("spark.hadoop.fs.s3a.session.token", "hunter2"),
        ("spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net", "hunter2"),
        ("spark.ssl.keyPassword", "hunter2"),
        ("spark.ssl.trustStorePassword", "hunter2"),
        ("spark.authenticate.secret", "hunter2"),
        ("spark.kafka.sasl.jaas.config", "hunter2"),
        ("spark.mine.sasl_jaas_config", "hunter2"),
        ("spark.executorEnv.API_KEY", "hunter2"),
        ("spark.driver.extraJavaOptions", "-Dx=1 -Djavax.net.ssl.trustStorePassword=hunter2"),
        ("spark.mine.login", 'Module required username="me" password="hunter2";'),
        ("spark.mine.url", "jdbc:postgresql://me:hunter2@db/orders"),
        ("fs.azure.sas.store.account.blob.core.windows.net", "sv=2022&sig=hunter2"),
        ("spark.mine.address", "https://store.example.org/a?sv=2022&sig=hunter2"),
        ("spark.mine.db.pass", "hunter2"),
        ("spark.mine.header", "Authorization: hunter2"),
        ("spark.mine.json", '{"user": "me", "password": "hunter2"}'),
        ("spark.x.password", 12345678),
        ("spark.hadoop.fs.s3a.secret.key", ["hunter2"]),
    ],
)
def test_a_setting_of_an_own_job_that_is_a_secret_is_refused_and_not_repeated(name, value):
    with pytest.raises(BadInput, match="no secret, since specs are kept") as mistake:
        with_job(conf={"spark.sql.shuffle.partitions": "4", name: value})
    assert mistake.value.field == f"workload.conf.{name}"
    assert not shown(mistake.value)
    assert len(str(mistake.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "index"),
    [
        (["--every=2", "--db-password=hunter2"], 1),
        (["--token", "hunter2"], 1),
        (["--url=kafka://me:hunter2@broker"], 0),
        (["--password", 12345678], 1),
        (["--password", "hun{x}ter2"], 1),
        (["--password=hunter2", "{nowhere}"], 0),
        (["--pass", "hunter2"], 1),
        (["--password hunter2"], 0),
        (['{{"password": "hunter2"}}'], 0),
        (["--header", "Authorization: Bearer hunter2"], 1),
        (["--header", "X-Api-Key: hunter2"], 1),
    ],
)
def test_an_argument_of_an_own_job_that_is_a_secret_is_refused_and_not_repeated(arguments, index):
    with pytest.raises(BadInput, match="no secret, since specs are kept") as mistake:
        with_job(arguments=arguments)
    assert mistake.value.field == f"workload.arguments.{index}"
    assert not shown(mistake.value)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"arguments": "--password hunter2"}, "workload.arguments: (not shown) is not usable; allowed: a list"),
        ({"arguments": ["hun{x}ter2"]}, "workload.arguments.0: (not shown) is not usable; allowed: only these"),
        ({"arguments": [12345678]}, "workload.arguments.0: (not shown) is not usable; allowed: a text"),
        ({"conf": "k.secret.key=hunter2"}, "workload.conf: (not shown) is not usable; allowed: a mapping"),
        ({"conf": {"k.secret.key=hunter2": None}}, "workload.conf.k.secret.key: (not shown)"),
        ({"conf": {"spark.mine.key2": 12345678}}, "workload.conf.spark.mine.key2: (not shown) is not usable"),
        ({"password": "hunter2"}, "workload.password: (not shown) is not usable; allowed: no such field"),
        ({"settings": {"password": "hunter2"}}, "workload.settings: (not shown) is not usable; allowed: no such"),
        ({"argument": ["--password", "hunter2"]}, "workload.argument: (not shown) is not usable; allowed: no such"),
        ({"inputs": {"a": {"replay": "me:hunter2@broker:1/a password=hunter2"}}}, "workload.inputs.a.replay: (not"),
    ],
)
def test_no_message_about_a_job_repeats_what_may_be_a_secret(fields, named):
    with pytest.raises(BadInput) as mistake:
        with_job(**fields)
    assert str(mistake.value).startswith(named)
    assert not shown(mistake.value)


@pytest.mark.parametrize(
    "override",
    [
        "workload.arguments.0=hunter2",
        "workload.conf.x=[hunter2",
        "name.password=hunter2",
        "workload.password=hunter2",
    ],
)
def test_no_message_about_an_override_repeats_what_may_be_a_secret(override):
    with pytest.raises(BadInput) as mistake:
        spec.load("wordcount", ["workload.arguments=[]", override])
    assert not shown(mistake.value)


@pytest.mark.parametrize("text", ["a:\n  b: 1\n password: hunter2", "password: *hunter2", "password: !hunter2 a"])
def test_yaml_that_is_not_valid_is_not_repeated(text, tmp_path):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"valid YAML \(line [13], column \d+: [a-z]") as mistake:
        read_mapping(tmp_path / "mine.yaml", "experiment", "mine.yaml")
    assert not shown(mistake.value)


def test_what_is_no_secret_or_only_says_where_one_is_is_fine():
    conf = {
        "spark.hadoop.hadoop.security.credential.provider.path": "jceks://file/etc/mine/keys.jceks",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "com.amazonaws.auth.InstanceProfileCredentialsProvider",
        "spark.authenticate.secretFile": "/etc/mine/secret",
        "spark.jars": "https://example.org:8443/a.jar",
        "spark.driver.extraJavaOptions": "-Djava.security.auth.login.config=/etc/mine/jaas.conf -Xmx1g",
        "spark.mine.tokenizer": "words",
        "spark.jars.packages": "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
        "spark.hadoop.hadoop.security.authorization": "true",
        "spark.mine.options": '{"maxTokens": 100}',
    }
    arguments = (
        "--password-file=/etc/mine/password",
        "--token-file",
        "/etc/mine/token",
        "--brokers={bootstrap_servers}",
        "--max-tokens",
        "100",
    )
    job = with_job(conf=conf, arguments=arguments).workload
    assert (job.conf, job.arguments) == (conf, arguments)


def test_the_names_that_spark_itself_hides_are_refused():
    for name in ("secret", "password", "token", "access.key", "accesskey"):  # of spark.redaction.regex
        assert is_secretive(f"spark.mine.{name}.Of.It")
