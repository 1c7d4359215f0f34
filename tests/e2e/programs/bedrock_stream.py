"""boto3 asks Bedrock what steps.json holds, and prints each event of the binary streams that come back."""

# What is imported is in the agents' own environment (.venv-soak).
# pyright: reportMissingImports=false
import json
from pathlib import Path

import boto3
from botocore.config import Config

KEYS = {"aws_access_key_id": "AKIATESTTESTTESTTEST", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
calm = Config(retries={"total_max_attempts": 1})
client = boto3.client("bedrock-runtime", config=calm, **KEYS)
for step in json.loads(Path("steps.json").read_text()):
    answer = client.invoke_model_with_response_stream(
        modelId=step["model"], body=step["body"], contentType="application/json"
    )
    print(json.dumps([json.loads(event["chunk"]["bytes"]) for event in answer["body"]]))
