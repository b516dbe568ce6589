"""The units of the services, the users that they run as, and the folders that they need.

`@programs@` stands for the folder of our programs; `platformctl services install` puts it in.
"""
