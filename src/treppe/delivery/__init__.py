"""Delivery: what a claim becomes on the wire, and what the other side's answer means for the job."""
