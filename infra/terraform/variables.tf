variable "name" {
  type        = string
  default     = "mirrorless-prod"
  description = "Name of the stack, and what the names of the other resources begin with."
}

variable "template_file" {
  type        = string
  description = "Path of the packaged template: what `sam package --output-template-file` wrote."
}

variable "configuration" {
  type        = string
  description = "Text of the MirrorMaker 2 configuration, such as file(\"mm2.properties\"). No passwords: refer to secrets."
}

variable "configuration_bucket" {
  type        = string
  description = "An existing bucket with versioning, in the region of the stack. Each change of the configuration is a deployment of its version."
}

variable "subnet_ids" {
  type        = list(string)
  description = "Private subnets of one VPC that reach both clusters; jobs run in the first one."

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "subnet_ids is empty: name one subnet, or two in different zones."
  }
}

variable "first_cluster_arn" {
  type        = string
  default     = ""
  description = "ARN of the existing MSK cluster that the flow reads; empty if it is not on MSK."
}

variable "second_cluster_arn" {
  type        = string
  default     = ""
  description = "ARN of the existing MSK cluster that the flow writes to; empty if it is not on MSK."
}

variable "broker_security_groups" {
  type = map(object({
    security_group_id = string
    port              = optional(number, 9098)
    trigger           = optional(bool, true)
  }))
  default     = {}
  description = "Security groups of the brokers, each once, by cluster: of this region, in the VPC of subnet_ids or in a peered one. Port 9098 is for IAM, 9096 for SCRAM, 9094 for TLS. `trigger` says whether Lambda polls the cluster: only in the VPC of subnet_ids, unless you create the endpoints of the other one."
}

variable "endpoints" {
  type        = bool
  default     = true
  description = "Whether VPC endpoints are created; false for subnets with NAT."
}

variable "existing_endpoints" {
  type        = set(string)
  default     = []
  description = "Services whose endpoint the VPC has already, such as [\"s3\", \"logs\"]: a second one with private DNS is refused."
}

variable "route_table_ids" {
  type        = list(string)
  default     = []
  description = "Route tables of the subnets, for the gateway endpoint of S3."
}

variable "alarm_emails" {
  type        = set(string)
  default     = []
  description = "Addresses that alarms are sent to, once each has confirmed."
}

variable "alarm_topic_kms_key_id" {
  type        = string
  default     = null
  description = "Customer managed key of the alarm topic, whose policy allows cloudwatch.amazonaws.com kms:Decrypt and kms:GenerateDataKey*; null for no encryption."
}

variable "parameters" {
  type        = map(string)
  default     = {}
  description = "Further parameters of the template, such as { BackwardEnabled = \"true\" }: docs/deployment.md."

  validation {
    condition = length(setintersection(keys(var.parameters), [
      "ConfigLocation", "SubnetIds", "SecurityGroupIds", "FirstClusterArn", "SecondClusterArn", "AlarmTopicArn",
    ])) == 0
    error_message = "ConfigLocation, SubnetIds, SecurityGroupIds, FirstClusterArn, SecondClusterArn and AlarmTopicArn come from the module: set its variables instead."
  }
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "Tags of the stack and of the other resources."
}
