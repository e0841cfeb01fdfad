"""Provides the shared parts of gRPC services: authentication, health, draining, limits, metrics,
logs.
"""
