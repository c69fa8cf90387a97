public enum P4 {}
