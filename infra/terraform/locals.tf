# What is decided from variables alone: no provider is needed to evaluate this file, and the tests do.
locals {
  # As in the template, where they are not set.
  defaults = {
    Triggers      = "auto"
    GlueJobs      = "true"
    SecretArns    = ""
    ParameterArns = ""
  }
  set = merge(local.defaults, var.parameters)

  has_jobs      = local.set.GlueJobs == "true"
  polls         = local.set.Triggers != "off" && anytrue([for one in values(var.broker_security_groups) : one.trigger])
  has_failures  = local.set.Triggers == "all" || local.polls
  has_secrets   = local.set.SecretArns != ""
  has_ssm       = local.set.ParameterArns != ""
  assumes_roles = lookup(local.set, "ClientRoleArns", "") != ""
  starts_copies = anytrue([
    for name in ["ForwardCopyFunctions", "BackwardCopyFunctions"] : tonumber(lookup(local.set, name, "1")) > 1
  ])
  trigger_secrets = anytrue([
    for name in ["FirstSecretArn", "SecondSecretArn"] : lookup(local.set, name, "") != ""
  ])

  # Services of docs/deployment.md, "Endpoints". Those of the poller are the same: it is in the same VPC.
  services = toset(concat(
    ["s3"],
    local.has_jobs ? ["glue", "monitoring", "logs"] : [],
    local.has_failures ? ["sqs"] : [],
    local.assumes_roles || local.polls ? ["sts"] : [],
    local.starts_copies || local.polls ? ["lambda"] : [],
    local.has_secrets || (local.polls && local.trigger_secrets) ? ["secretsmanager"] : [],
    local.has_ssm ? ["ssm"] : [],
    lookup(local.set, "CustomResourcesInVpc", "false") == "true" ? ["ec2", "glue", "lambda"] : [],
  ))
  created            = var.endpoints ? setsubtract(local.services, var.existing_endpoints) : toset([])
  interface_services = setsubtract(local.created, ["s3"])
  # Interface endpoints take traffic from functions and jobs, and from the brokers' groups, which the poller has.
  endpoint_clients = local.polls ? { for name, one in var.broker_security_groups : name => one.security_group_id if one.trigger } : {}
  self_rules       = local.set.Triggers == "off" ? {} : { for name, one in var.broker_security_groups : name => one if one.trigger }

  parameters = merge(var.parameters, {
    SubnetIds        = join(",", var.subnet_ids)
    FirstClusterArn  = var.first_cluster_arn
    SecondClusterArn = var.second_cluster_arn
  })
}
