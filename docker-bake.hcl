# The image for two platforms: IMAGE=registry.example.com/scheduling docker buildx bake --push
# It needs a builder for both: docker buildx create --use, and QEMU for the foreign one.

variable "IMAGE" {
  default = "scheduling"
}

# The version of pyproject.toml.
variable "VERSION" {
  default = "1.0.0"
}

target "default" {
  context    = "."
  dockerfile = "Dockerfile"
  platforms  = ["linux/amd64", "linux/arm64"]
  tags       = ["${IMAGE}:${VERSION}"]
  # What the image is made of, and how it was built.
  attest = ["type=sbom", "type=provenance,mode=max"]
  labels = {
    "org.opencontainers.image.title"   = "scheduling"
    "org.opencontainers.image.version" = VERSION
  }
}
