"""The netns driver: hosts are network namespaces of this machine, each with an sshd. Needs root."""
