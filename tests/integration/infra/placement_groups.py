"""Placement groups for moto, which has none (5.2): made, listed and deleted, with instances placed in them.

Refuses what EC2 refuses: a partition that the group does not have, and the end of a group that is in use.
"""

from __future__ import annotations

from typing import Any

import pytest
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

GROUPS: dict[str, dict[str, Any]] = {}


def install(patch: pytest.MonkeyPatch) -> None:
    """Teach moto's EC2 placement groups for as long as the patch lasts."""
    GROUPS.clear()
    patch.setattr(EC2Response, "create_placement_group", _create, raising=False)
    patch.setattr(EC2Response, "describe_placement_groups", _describe, raising=False)
    patch.setattr(EC2Response, "delete_placement_group", _delete, raising=False)
    patch.setattr(EC2Response, "run_instances", _placed(EC2Response.run_instances))


def _create(response: EC2Response) -> ActionResult:
    name = response._get_param("GroupName")
    tags = response._parse_tag_specification("placement-group").get("placement-group", {})
    GROUPS[name] = {
        "GroupName": name,
        "GroupId": f"pg-{len(GROUPS):017x}",
        "State": "available",
        "Strategy": response._get_param("Strategy"),
        "PartitionCount": response._get_param("PartitionCount"),
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    return ActionResult({"PlacementGroup": GROUPS[name]})


def _describe(response: EC2Response) -> ActionResult:
    names = response._get_param("GroupNames", []) or list(GROUPS)
    return ActionResult({"PlacementGroups": [_group(name) for name in names]})


def _delete(response: EC2Response) -> EmptyResult:
    name = response._get_param("GroupName")
    instances = [i for reservation in response.ec2_backend.describe_instances() for i in reservation.instances]
    if any(i.placement.group_name == name and i.state != "terminated" for i in instances):
        raise EC2ClientError("InvalidPlacementGroup.InUse", f"The placement group {name} is in use")
    del GROUPS[_group(name)["GroupName"]]
    return EmptyResult()


def _placed(run_instances: Any) -> Any:
    def run_and_place(response: EC2Response) -> ActionResult:
        name, number = response._get_param("Placement.GroupName"), response._get_param("Placement.PartitionNumber")
        if not 1 <= number <= _group(name)["PartitionCount"]:
            raise EC2ClientError("InvalidParameterValue", f"The placement group {name} has no partition {number}")
        result = run_instances(response)
        for instance in result.result.instances:
            instance.placement.group_name, instance.placement.partition_number = name, number
        return result

    return run_and_place


def _group(name: str) -> dict[str, Any]:
    if name not in GROUPS:
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The placement group {name} is unknown")
    return GROUPS[name]
