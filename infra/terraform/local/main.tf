# An inventory of machines that exist. Needs no provider: terraform_data is built into Terraform.

terraform {
  required_version = ">= 1.4" # the first with terraform_data
}

resource "terraform_data" "host" {
  for_each = var.hosts

  input = {
    name             = each.key
    role             = each.value.role
    address          = each.value.address
    internal_address = each.value.internal_address
    port             = each.value.port
    user             = var.user
    key_file         = abspath(pathexpand(var.key_file))
    host_key         = trimspace(each.value.host_key)
    domains          = sort(each.value.domains)
    cores            = each.value.cores
    memory_mb        = each.value.memory_mb
  }

  lifecycle {
    precondition {
      condition     = fileexists(pathexpand(var.key_file))
      error_message = "key_file is not there: ${var.key_file}."
    }
  }
}
