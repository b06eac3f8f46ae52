variable "token" {
  description = "The run's ownership token: a tag of everything that is made, so that what was forgotten can be found."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9-]{8,64}$", var.token))
    error_message = "The token is 8 to 64 letters, digits and hyphens."
  }
}

variable "region" {
  description = "Where the machines are, such as eu-central-1."
  type        = string
}

variable "ssh_from" {
  description = "The one IPv4 address, without a mask, that may open SSH: the controller's, as the world sees it."
  type        = string

  validation {
    condition     = can(cidrhost("${var.ssh_from}/32", 0)) && can(regex("^[1-9][0-9.]*$", var.ssh_from))
    error_message = "ssh_from is one IPv4 address without a mask, such as 203.0.113.7; a range would open SSH to others."
  }
}

variable "racks" {
  description = "How many workers there are on each rack, by the rack's name. A rack is a failure domain: no hardware of it is another's."
  type        = map(number)

  validation {
    condition     = length(var.racks) >= 1 && length(var.racks) <= 6
    error_message = "From 1 to 6 racks: a placement group has 7 partitions in an availability zone, one is the gateway's."
  }
  validation {
    condition     = alltrue([for count in values(var.racks) : count >= 1 && floor(count) == count])
    error_message = "Every rack has a whole number of workers, at least 1."
  }
  validation {
    condition     = alltrue([for rack in keys(var.racks) : can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", rack))])
    error_message = "The name of a rack is of lower-case letters, digits and hyphens."
  }
}

variable "ami" {
  description = "The image of every machine: a Debian or Ubuntu with cloud-init, for the architecture of instance_type."
  type        = string

  validation {
    condition     = can(regex("^ami-[0-9a-f]+$", var.ami))
    error_message = "The ami is an image's id, such as ami-0123456789abcdef0."
  }
}

variable "instance_type" {
  description = "The type of every machine. The gateway runs broker, master, query driver and generator."
  type        = string
  default     = "m7i.large"
}

variable "disk_gb" {
  description = "Size of each root disk in GB."
  type        = number
  default     = 20

  validation {
    condition     = var.disk_gb >= 8 && floor(var.disk_gb) == var.disk_gb
    error_message = "The disk_gb is a whole number, at least 8."
  }
}

variable "user" {
  description = "The user that the image lets in by SSH."
  type        = string
  default     = "admin" # Debian's images
}

variable "key_file" {
  description = "That user's private key, a file on the controller; its public half lies beside it as .pub. Only the public half is read."
  type        = string
}

variable "host_keys" {
  description = "Folder of the machines' host keys: for each of gateway, worker-1, worker-2 ... an Ed25519 key NAME and NAME.pub."
  type        = string
}
