"""EC2 as moto plays it, on loopback, and what a test asks of it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest
import yaml
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.server import ThreadedMotoServer

from tests.integration.infra import placement_groups

REGION, BY_ZONE = "eu-central-1", "availability-zone"
TOKEN_TAG = "AftershockToken"


class Cloud:
    """A region of an account that has its default network and images, and nothing else yet."""

    def __init__(self, endpoint: str, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.environment = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.client = boto3.client(
            "ec2", REGION, endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test"
        )
        self.before = self.remains()

    def image(self) -> str:
        return self.client.describe_images()["Images"][0]["ImageId"]

    def offer(self, instance_type: str, *zones: str) -> None:
        """Have that instance type, and no other, in these zones, as long as the cloud lasts."""
        offers = [{"InstanceType": instance_type, "Location": zone, "LocationType": BY_ZONE} for zone in zones]
        self._patch.setitem(INSTANCE_TYPE_OFFERINGS[BY_ZONE], REGION, offers)

    def token_of(self, thing: dict[str, Any]) -> str | None:
        return _tag(thing, TOKEN_TAG)

    def hosts(self, token: str) -> dict[str | None, dict[str, Any]]:
        """The instances of a run by their names."""
        owned = [{"Name": f"tag:{TOKEN_TAG}", "Values": [token]}]
        reservations = self.client.describe_instances(Filters=owned)["Reservations"]
        instances = [instance for reservation in reservations for instance in reservation["Instances"]]
        return {_tag(instance, "Name"): instance for instance in instances}

    def openings(self, token: str) -> set[tuple[str, int, int, str]]:
        """What may come in to the hosts of a run: protocol, first and last port, and from where."""
        rules = self.client.describe_security_group_rules()["SecurityGroupRules"]
        return {
            (rule["IpProtocol"], rule["FromPort"], rule["ToPort"], _origin(rule))
            for rule in rules
            if self.token_of(rule) == token and not rule["IsEgress"]
        }

    def host_key_at_birth(self, instance: str) -> str:
        """The public host key that an instance is told to take."""
        told = self.client.describe_instance_attribute(InstanceId=instance, Attribute="userData")["UserData"]["Value"]
        public = yaml.safe_load(base64.b64decode(told))["ssh_keys"]["ed25519_public"]
        return " ".join(public.split()[:2])

    def remains(self) -> dict[str, set[str]]:
        """What there is, by kind; no interfaces, which moto, unlike EC2, keeps when their instances end."""
        client = self.client
        reservations = client.describe_instances()["Reservations"]
        instances = [instance for reservation in reservations for instance in reservation["Instances"]]
        return {
            "instances": {i["InstanceId"] for i in instances if i["State"]["Name"] != "terminated"},
            "volumes": {volume["VolumeId"] for volume in client.describe_volumes()["Volumes"]},
            "networks": {vpc["VpcId"] for vpc in client.describe_vpcs()["Vpcs"]},
            "gateways": {igw["InternetGatewayId"] for igw in client.describe_internet_gateways()["InternetGateways"]},
            "addresses": {address["PublicIp"] for address in client.describe_addresses()["Addresses"]},
            "groups": {group["GroupId"] for group in client.describe_security_groups()["SecurityGroups"]},
            "keys": {pair["KeyName"] for pair in client.describe_key_pairs()["KeyPairs"]},
            "placement groups": {group["GroupName"] for group in client.describe_placement_groups()["PlacementGroups"]},
        }


def _tag(thing: dict[str, Any], key: str) -> str | None:
    return next((tag["Value"] for tag in thing.get("Tags", []) if tag["Key"] == key), None)


def _origin(rule: dict[str, Any]) -> str:
    if rule.get("ReferencedGroupInfo", {}).get("GroupId") == rule["GroupId"]:
        return "the group"
    return rule.get("CidrIpv4") or rule.get("CidrIpv6") or "elsewhere"


@contextmanager
def running() -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        placement_groups.install(patch)
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            yield Cloud("http://{}:{}".format(*server.get_host_and_port()), patch)
        finally:
            server.stop()
