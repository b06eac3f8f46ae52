# The machines. They get their host keys at birth, so that these can be pinned before the first connection.

locals {
  tags = { Project = "aftershock", AftershockToken = var.token }
  name = "aftershock-${var.token}"

  racks        = sort(keys(var.racks))
  worker_racks = flatten([for rack in local.racks : [for _ in range(var.racks[rack]) : rack]])
  worker_names = [for index, _ in local.worker_racks : "worker-${index + 1}"]
  workers      = zipmap(local.worker_names, local.worker_racks)
  partitions   = merge({ gateway = 1 }, { for name, rack in local.workers : name => index(local.racks, rack) + 2 })
  key_file     = abspath(pathexpand(var.key_file))

  # A key that is lost must not keep the machines from being destroyed: it reads as nothing, which only apply refuses.
  login_key = try(file("${local.key_file}.pub"), "")
  host_keys = { for name, _ in local.partitions : name => {
    private = try(file(pathexpand("${var.host_keys}/${name}")), "")
    public  = try(trimspace(file(pathexpand("${var.host_keys}/${name}.pub"))), "")
  } }
}

data "aws_ec2_instance_type" "hosts" {
  instance_type = var.instance_type
}

data "aws_ec2_instance_type_offerings" "zones" {
  location_type = "availability-zone"

  filter {
    name   = "instance-type"
    values = [var.instance_type]
  }
}

# Partitions share no hardware with one another: what fails with a rack stays in one.
resource "aws_placement_group" "hosts" {
  name            = local.name
  strategy        = "partition"
  partition_count = length(local.racks) + 1
}

resource "aws_key_pair" "controller" {
  key_name   = local.name
  public_key = local.login_key

  lifecycle {
    precondition {
      condition     = local.login_key != ""
      error_message = "No public key in ${local.key_file}.pub."
    }
  }
}

resource "aws_instance" "host" {
  for_each = local.partitions

  ami                         = var.ami
  instance_type               = var.instance_type
  key_name                    = aws_key_pair.controller.key_name
  subnet_id                   = aws_subnet.hosts.id
  vpc_security_group_ids      = [aws_security_group.hosts.id]
  placement_group             = aws_placement_group.hosts.name
  placement_partition_number  = each.value
  tags                        = { Name = each.key }
  volume_tags                 = merge(local.tags, { Name = each.key }) # a provider's default tags reach no volume
  user_data_replace_on_change = true
  user_data = "#cloud-config\n${yamlencode({
    ssh_pwauth = false
    ssh_keys = {
      ed25519_private = local.host_keys[each.key].private
      ed25519_public  = local.host_keys[each.key].public
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

  lifecycle {
    precondition {
      condition     = local.host_keys[each.key].private != "" && startswith(local.host_keys[each.key].public, "ssh-ed25519 ")
      error_message = "No Ed25519 host key ${each.key} and ${each.key}.pub in ${var.host_keys}."
    }
  }

  depends_on = [aws_route_table_association.hosts] # a gateway to the world goes only when nobody uses it
}
