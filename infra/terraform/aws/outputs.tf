output "inventory" {
  description = "What the ssh driver reads: docs/reference/inventory.md."
  value = {
    # By number, for the experiment counts workers in this order: a map's own order has worker-10 before worker-2.
    hosts = [for name in concat(["gateway"], local.worker_names) : {
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
    } if contains(keys(aws_instance.host), name)] # one that was lost is not there until the next apply
  }
}
