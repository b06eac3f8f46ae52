# The machines. They get their host keys at birth, so that these can be pinned before the first connection.

locals {
  tags = { Project = "aftershock", AftershockToken = var.token }
  name = "aftershock-${var.token}"

  racks        = sort(keys(var.racks))
  worker_racks = flatten([for rack in local.racks : [for _ in range(var.racks[rack]) : rack]])
  workers      = { for index, rack in local.worker_racks : "worker-${index + 1}" => rack }
  partitions   = merge({ gateway = 1 }, { for name, rack in local.workers : name => index(local.racks, rack) + 2 })
  host_keys    = { for name, _ in local.partitions : name => pathexpand("${var.host_keys}/${name}") }
  key_file     = abspath(pathexpand(var.key_file))
}

data "aws_ec2_instance_type" "hosts" {
  instance_type = var.instance_type
}

# Partitions share no hardware with one another: what fails with a rack stays in one.
resource "aws_placement_group" "hosts" {
  name            = local.name
  strategy        = "partition"
  partition_count = length(local.racks) + 1
}

resource "aws_key_pair" "controller" {
  key_name   = local.name
  public_key = file("${local.key_file}.pub")
}

resource "aws_instance" "host" {
  for_each = local.partitions

  ami                         = var.ami
  instance_type               = var.instance_type
  key_name                    = aws_key_pair.controller.key_name
  subnet_id                   = aws_subnet.hosts.id
  vpc_security_group_ids      = [aws_security_group.hosts.id]
  associate_public_ip_address = true
  placement_group             = aws_placement_group.hosts.name
  placement_partition_number  = each.value
  tags                        = { Name = each.key }
  volume_tags                 = merge(local.tags, { Name = each.key }) # a provider's default tags reach no volume
  user_data_replace_on_change = true
  user_data = "#cloud-config\n${yamlencode({
    ssh_pwauth = false
    ssh_keys = {
      ed25519_private = file(local.host_keys[each.key])
      ed25519_public  = file("${local.host_keys[each.key]}.pub")
    }
  })}"

  metadata_options {
    http_tokens                 = "required" # IMDSv2
    http_put_response_hop_limit = 1
  }

  root_block_device {
    encrypted   = true
    volume_size = var.disk_gb
    volume_type = "gp3"
  }

  depends_on = [aws_route_table_association.hosts] # a gateway to the world goes only when nobody uses it
}
