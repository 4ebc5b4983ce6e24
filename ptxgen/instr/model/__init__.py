"""How instructions are declared, recognized, checked and explained."""
