output "inventory" {
  description = "What the ssh driver reads: docs/reference/inventory.md."
  value       = { hosts = [for host in terraform_data.host : host.output] }
}
