# A network of its own, shut but for SSH from the controller. Among themselves the machines may do anything.

locals {
  # A Local Zone that the account has opted into is listed, too; its name has more than a letter after the region's.
  zones = sort([for zone in data.aws_ec2_instance_type_offerings.zones.locations : zone if can(regex("^${var.region}[a-z]$", zone))])
}

resource "aws_vpc" "cluster" {
  cidr_block = "10.77.0.0/16"
  tags       = { Name = local.name }
}

resource "aws_subnet" "hosts" {
  vpc_id                  = aws_vpc.cluster.id
  cidr_block              = "10.77.1.0/24" # one subnet: a placement group's partitions are those of one zone
  availability_zone       = local.zones[0]
  tags                    = { Name = local.name }
  map_public_ip_on_launch = true # asked of each instance, a stop and start would have the next apply replace it

  lifecycle {
    ignore_changes = [availability_zone] # a zone that offers the type only later must not have all machines replaced

    precondition {
      condition     = length(local.zones) > 0
      error_message = "No availability zone of ${var.region} offers ${var.instance_type}."
    }
  }
}

resource "aws_internet_gateway" "world" {
  vpc_id = aws_vpc.cluster.id
  tags   = { Name = local.name }
}

resource "aws_route_table" "hosts" {
  vpc_id = aws_vpc.cluster.id
  tags   = { Name = local.name }

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.world.id
  }
}

resource "aws_route_table_association" "hosts" {
  subnet_id      = aws_subnet.hosts.id
  route_table_id = aws_route_table.hosts.id
}

resource "aws_security_group" "hosts" {
  name        = local.name
  description = "Aftershock: SSH from the controller, everything among the hosts"
  vpc_id      = aws_vpc.cluster.id
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  security_group_id = aws_security_group.hosts.id
  description       = "SSH from the controller"
  cidr_ipv4         = "${var.ssh_from}/32"
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}

resource "aws_vpc_security_group_ingress_rule" "among_hosts" {
  security_group_id            = aws_security_group.hosts.id
  referenced_security_group_id = aws_security_group.hosts.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "among_hosts" {
  security_group_id            = aws_security_group.hosts.id
  referenced_security_group_id = aws_security_group.hosts.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "packages" {
  for_each = toset(["80", "443"])

  security_group_id = aws_security_group.hosts.id
  description       = "Package and jar registries"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.key)
  to_port           = tonumber(each.key)
}
