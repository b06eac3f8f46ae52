variable "hosts" {
  description = "The machines by name. host_key is the public key that each must show, memory_mb its memory in MB."
  type = map(object({
    role             = optional(string, "worker")
    address          = string
    internal_address = optional(string) # where the other hosts reach it, when not at address
    port             = optional(number, 22)
    host_key         = string
    domains          = optional(set(string), [])
    cores            = number
    memory_mb        = number
  }))

  validation {
    condition     = alltrue([for host in var.hosts : contains(["gateway", "worker"], host.role)])
    error_message = "The role of a host is gateway or worker."
  }
  validation {
    condition     = length([for host in var.hosts : host if host.role == "gateway"]) == 1
    error_message = "Exactly one host has role gateway."
  }
  validation {
    condition     = length(distinct([for host in var.hosts : host.address])) == length(var.hosts)
    error_message = "Every host has an address of its own."
  }
  validation {
    condition     = alltrue([for host in var.hosts : can(regex("^(ssh|ecdsa)-[a-z0-9-]+ AAAA[A-Za-z0-9+/=]+", host.host_key))])
    error_message = "The host_key of a host is its public key: type and base64, as in /etc/ssh/ssh_host_ed25519_key.pub."
  }
}

variable "user" {
  description = "The user to log in as, on every host."
  type        = string
}

variable "key_file" {
  description = "That user's private key, a file on the controller. Only its path is kept."
  type        = string
}
