"""Challenges of the proof of work."""

from rest_framework import serializers

from common.api.serializers import ObjectSerializer


class ChallengeSerializer(ObjectSerializer):
    examples = {
        "challenge": 64 * "a",
        "maxnumber": 50_000,
        "salt": "5f3c8b0e1d2a4c6e8f901234?expires=1795597200&",
        "signature": 64 * "b",
    }

    algorithm = serializers.ChoiceField(["SHA-256"])
    challenge = serializers.CharField(help_text="Hexadecimal.")
    maxnumber = serializers.IntegerField(min_value=1)
    salt = serializers.CharField()
    signature = serializers.CharField(help_text="Hexadecimal.")


class ChallengeAnswerSerializer(ChallengeSerializer):
    """The official ALTCHA widget reads the members at the top, other clients those of `data`."""

    data = ChallengeSerializer()  # type: ignore[assignment]  # DRF takes it out
