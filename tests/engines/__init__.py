"""The real engines that tests run against, and the tests of what this project expects from them."""
