output "stack" {
  value       = aws_cloudformation_stack.flow.outputs
  description = "Outputs of the stack: flows, jobs, dashboards, failure queues, the bucket with reports."
}

output "security_group_id" {
  value       = aws_security_group.flow.id
  description = "Security group of functions and jobs, for rules of brokers elsewhere."
}

output "config_location" {
  value       = "s3://${aws_s3_object.configuration.bucket}/${aws_s3_object.configuration.key}"
  description = "The configuration, for `mirrorless` commands."
}

output "alarm_topic_arn" {
  value       = aws_sns_topic.alarms.arn
  description = "The topic that alarms are sent to."
}
