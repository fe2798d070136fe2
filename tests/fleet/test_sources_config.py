"""What `[[sources]]` accepts and refuses; nothing secret is among it."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import get_args

import pytest

from fleet.config import parse_config
from fleet.errors import ConfigError
from fleet.sources_config import SOURCES_TEMPLATE, AwsApi, AwsExport, GcpBigQuery, GcpPrices, Source

AWS = "[[sources]]\nname = 'aws'\nkind = 'aws_api'\nregions = ['us-east-1']\n"
BILL = "[[sources]]\nname = 'bill'\nkind = 'aws_export'\nbucket = 'our-bills'\nprefix = ''\nexport = 'cur'\n"
BIGQUERY = "[[sources]]\nname = 'gcp'\nkind = 'gcp_bigquery'\nproject = 'p'\ntable = 'd.t'\n"


def test_each_kind_has_its_own_keys() -> None:
    prices = "[[sources]]\nname = 'prices'\nkind = 'gcp_prices'\n"
    assert parse_config(AWS + BILL + BIGQUERY + prices).sources == (
        AwsApi("aws", ("us-east-1",), ("commitments", "reservations", "invoices")),
        AwsExport("bill", "our-bills", "", "cur"),
        GcpBigQuery("gcp", "p", "d.t"),
        GcpPrices("prices", "USD"),
    )


def test_the_template_shows_every_key_of_every_kind_with_its_default() -> None:
    shown = "\n".join(
        line.removeprefix("# ") for line in SOURCES_TEMPLATE.splitlines() if re.match(r"# (\[\[|\w+ = )", line)
    )
    sources = parse_config(shown).sources
    assert [type(source) for source in sources] == list(get_args(Source))
    for source, text in zip(sources, shown.split("[[sources]]")[1:], strict=True):
        assert set(re.findall(r"^(\w+) = ", text, re.MULTILINE)) == {field.name for field in fields(source)}
        defaults = {field.name: field.default for field in fields(source) if field.default is not MISSING}
        assert {name: getattr(source, name) for name in defaults} == defaults


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[sources]]\nname = 'a'", "sources[0].kind is missing: one of 'aws_export', 'aws_api', 'gcp_bigquery'"),
        ("[[sources]]\nname = 'a'\nkind = 'aws'", "sources[0].kind must be one of 'aws_export', 'aws_api', "),
        ("[[sources]]\nname = 'a'\nkind = 7", "sources[0].kind must be one of 'aws_export', 'aws_api', "),
        ("sources = ['aws']", "sources[0] must be a table, not a string"),
        ("[sources]\nname = 'a'", "sources must be a list, not a table"),
        (AWS + "region = 'x'", "unknown key sources[0].region; did you mean sources[0].regions?"),
        (AWS + BILL + "table = 'x'", "unknown key sources[1].table; known keys: name, bucket, prefix, export, "),
        (AWS + AWS.replace("'aws'", "'AWS'"), "sources: two are called 'aws'"),
        (AWS.replace("'aws'", "'../aws'"), "sources[0].name: '../aws' is not a name of up to 63 letters"),
        (AWS.replace("'aws'", "''"), "sources[0].name: '' is not a name"),
        (AWS.replace("['us-east-1']", "[]"), "sources[0].regions: must not be empty"),
        (AWS.replace("'us-east-1'", "'US East'"), "sources[0].regions: 'US East' is not a region such as us-east-1"),
        (AWS.replace("['us-east-1']", "['a', 'a']"), "sources[0].regions: names something twice"),
        (AWS + "services = []", "sources[0].services: must not be empty"),
        (AWS + "services = ['bills']", "sources[0].services[0] must be one of 'commitments', 'reservations', "),
        (AWS + "services = ['prices']", "sources[0].instance_types: and \"prices\" in services belong together"),
        (AWS + "instance_types = ['p5.48xlarge']", "sources[0].instance_types: and \"prices\" in services belong"),
        (
            AWS + "services = ['prices']\ninstance_types = ['p5']",
            "sources[0].instance_types: 'p5' is not a type such as p5.48xlarge",
        ),
        (AWS + "endpoint_url = 'aws.example'", "sources[0].endpoint_url: is not an address such as https://"),
        (AWS + "endpoint_url = 'https://[::1'", "sources[0].endpoint_url: is not an address such as https://"),
        (AWS + "endpoint_url = 'https://me:key@aws'", "sources[0].endpoint_url: may hold no user, password or query"),
        (AWS + "endpoint_url = 'https://aws/?key=1'", "sources[0].endpoint_url: may hold no user, password or query"),
        (BILL.replace("our-bills", "s3://our-bills"), "sources[0].bucket: 's3://our-bills' is not the name"),
        (BILL.replace("'cur'", "''"), "sources[0].export: a name must not be empty"),
        (BIGQUERY.replace("d.t", "t"), "sources[0].table: 't' is not DATASET.TABLE"),
        (BIGQUERY.replace("d.t", "d.t`; DROP"), "sources[0].table: 'd.t`; DROP' is not DATASET.TABLE"),
        (
            "[[sources]]\nname = 'p'\nkind = 'gcp_prices'\ncurrency = 'usd'",
            "sources[0].currency: 'usd' is not a currency code",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_named_by_their_path(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert str(caught.value).startswith(f"gputally.toml: {told}")


@pytest.mark.parametrize("key", ["aws_secret_access_key", "token", "credentials", "api_key"])
def test_a_secret_has_no_place_and_is_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown key sources\[0\]\.{key}") as caught:
        parse_config(f"{AWS}{key} = 'hush-hush'")
    assert "hush" not in str(caught.value)
