"""What an agent looked at in a recorded match, as a picture and in numbers."""
