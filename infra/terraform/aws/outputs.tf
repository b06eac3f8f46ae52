output "inventory" {
  description = "What the ssh driver reads: docs/reference/inventory.md."
  value = {
    # By number: by name, worker-10 would come before worker-2, and the driver counts workers in this order.
    hosts = [for name in concat(["gateway"], [for index, _ in local.worker_racks : "worker-${index + 1}"]) : {
      name             = name
      role             = name == "gateway" ? "gateway" : "worker"
      address          = aws_instance.host[name].public_ip
      internal_address = aws_instance.host[name].private_ip
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
