# Deploys the packaged template beside existing clusters, and makes what it needs: docs/deployment.md, "Terraform".
data "aws_region" "here" {}

data "aws_caller_identity" "here" {}

data "aws_subnet" "first" {
  id = var.subnet_ids[0]
}

# The network of functions and jobs.

resource "aws_security_group" "flow" {
  name_prefix = "${var.name}-"
  description = "Functions and jobs of ${var.name}"
  vpc_id      = data.aws_subnet.first.vpc_id
  tags        = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "flow_itself" {
  count                        = local.has_jobs ? 1 : 0
  security_group_id            = aws_security_group.flow.id
  description                  = "Workers of a Glue job reach each other on any port"
  referenced_security_group_id = aws_security_group.flow.id
  ip_protocol                  = "tcp"
  from_port                    = 0
  to_port                      = 65535
}

resource "aws_vpc_security_group_egress_rule" "flow" {
  security_group_id = aws_security_group.flow.id
  description       = "Brokers, endpoints, and the workers of a job"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_vpc_security_group_ingress_rule" "brokers" {
  for_each                     = var.broker_security_groups
  security_group_id            = each.value.security_group_id
  description                  = "Functions and jobs of ${var.name}"
  referenced_security_group_id = aws_security_group.flow.id
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_ingress_rule" "poller" {
  for_each                     = local.self_rules
  security_group_id            = each.value.security_group_id
  description                  = "Lambda's poller for ${var.name}, which has the group of the brokers"
  referenced_security_group_id = each.value.security_group_id
  ip_protocol                  = "tcp"
  from_port                    = each.value.port
  to_port                      = each.value.port
}

# Access to AWS without NAT.

resource "aws_security_group" "endpoints" {
  count       = length(local.interface_services) > 0 ? 1 : 0
  name_prefix = "${var.name}-endpoints-"
  description = "VPC endpoints for ${var.name}"
  vpc_id      = data.aws_subnet.first.vpc_id
  tags        = var.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "endpoints_from_flow" {
  count                        = length(aws_security_group.endpoints)
  security_group_id            = aws_security_group.endpoints[0].id
  description                  = "Functions and jobs"
  referenced_security_group_id = aws_security_group.flow.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_security_group_ingress_rule" "endpoints_from_poller" {
  for_each                     = length(local.interface_services) > 0 ? local.endpoint_clients : {}
  security_group_id            = aws_security_group.endpoints[0].id
  description                  = "Lambda's poller"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_endpoint" "interface" {
  for_each            = local.interface_services
  vpc_id              = data.aws_subnet.first.vpc_id
  service_name        = "com.amazonaws.${data.aws_region.here.id}.${each.key}"
  vpc_endpoint_type   = "Interface"
  subnet_ids          = var.subnet_ids
  security_group_ids  = [aws_security_group.endpoints[0].id]
  private_dns_enabled = true
  tags                = var.tags
}

resource "aws_vpc_endpoint" "s3" {
  count             = contains(local.created, "s3") ? 1 : 0
  vpc_id            = data.aws_subnet.first.vpc_id
  service_name      = "com.amazonaws.${data.aws_region.here.id}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = var.route_table_ids
  tags              = var.tags

  lifecycle {
    precondition {
      condition     = length(var.route_table_ids) > 0
      error_message = "route_table_ids is empty: name the route tables of subnet_ids, or add \"s3\" to existing_endpoints."
    }
  }
}

# The configuration.

resource "aws_s3_object" "configuration" {
  bucket  = var.configuration_bucket
  key     = "${var.name}/mm2.properties"
  content = var.configuration
  tags    = var.tags
}

# Alarms.

resource "aws_sns_topic" "alarms" {
  name              = "${var.name}-alarms"
  kms_master_key_id = var.alarm_topic_kms_key_id
  tags              = var.tags
}

data "aws_iam_policy_document" "alarms" {
  statement {
    sid       = "Alarms"
    actions   = ["sns:Publish"]
    resources = [aws_sns_topic.alarms.arn]

    principals {
      type        = "Service"
      identifiers = ["cloudwatch.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.here.account_id]
    }
  }
}

resource "aws_sns_topic_policy" "alarms" {
  arn    = aws_sns_topic.alarms.arn
  policy = data.aws_iam_policy_document.alarms.json
}

resource "aws_sns_topic_subscription" "alarms" {
  for_each  = var.alarm_emails
  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = each.key
}

# The deployment.

resource "aws_cloudformation_stack" "flow" {
  name          = var.name
  template_body = file(var.template_file)
  capabilities  = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  tags          = var.tags

  parameters = merge(local.parameters, {
    ConfigLocation   = "s3://${aws_s3_object.configuration.bucket}/${aws_s3_object.configuration.key}?versionId=${aws_s3_object.configuration.version_id}"
    SecurityGroupIds = aws_security_group.flow.id
    AlarmTopicArn    = aws_sns_topic.alarms.arn
  })

  lifecycle {
    precondition {
      condition     = coalesce(aws_s3_object.configuration.version_id, "null") != "null"
      error_message = "configuration_bucket ${var.configuration_bucket} has no versioning: enable it, a deployment names a version of the configuration."
    }
  }

  # The custom resources need the network, and functions run as soon as they exist.
  depends_on = [
    aws_vpc_endpoint.interface,
    aws_vpc_endpoint.s3,
    aws_vpc_security_group_egress_rule.flow,
    aws_vpc_security_group_ingress_rule.brokers,
    aws_vpc_security_group_ingress_rule.endpoints_from_flow,
    aws_vpc_security_group_ingress_rule.endpoints_from_poller,
    aws_vpc_security_group_ingress_rule.flow_itself,
    aws_vpc_security_group_ingress_rule.poller,
  ]
}
