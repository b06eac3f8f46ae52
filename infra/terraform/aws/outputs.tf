output "inventory" {
  description = "What the ssh driver reads: docs/reference/inventory.md."
  value = {
    hosts = [for name, host in aws_instance.host : {
      name             = name
      role             = name == "gateway" ? "gateway" : "worker"
      address          = host.public_ip
      internal_address = host.private_ip
      port             = 22
      user             = var.user
      key_file         = local.key_file
      host_key         = local.host_keys[name].public
      domains          = name == "gateway" ? [] : [local.workers[name]]
      cores            = data.aws_ec2_instance_type.hosts.default_vcpus
      memory_mb        = data.aws_ec2_instance_type.hosts.memory_size
    }]
  }
}
