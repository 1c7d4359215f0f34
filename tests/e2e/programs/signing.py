"""boto3 signs requests with the time, which a server checks: a clamped clock must be the right one (freezegun#188)."""

# What is imported is in the agents' own environment (.venv-soak).
# pyright: reportMissingImports=false
import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

KEYS = {"aws_access_key_id": "AKIATESTTESTTESTTEST", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
calm = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
client = boto3.client("s3", endpoint_url="https://search.example.com", config=calm, **KEYS)
for key in ("a", "b"):
    try:
        client.put_object(Bucket="bucket", Key=key, Body=b"text")
    except ClientError as error:
        print(key, error.response["ResponseMetadata"]["HTTPStatusCode"])
print(client.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "a"}))
