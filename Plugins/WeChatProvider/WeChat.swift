/// Sign-in with WeChat.
