"""What an agent looked at in a recorded match: its attention over the opponent's past, as a
picture.
"""
