import Testing

@testable import MartletRedis

@Suite struct RedisErrorReplyTests {
    @Test(arguments: [
        ("READONLY You can't write against a read only replica. script: 0f, on @user_script:1.", "READONLY"),
        ("OOM command not allowed when used memory > 'maxmemory'. script: 0f, on @user_script:1.", "OOM"),
        (
            "ERR Error running script (call to f_0f): @user_script:1: @user_script: 1: -OOM command not allowed when",
            "OOM"
        ),
        (
            "ERR Error running script (call to f_0f): @user_script:1: @user_script: 1: -READONLY You can't write",
            "READONLY"
        ),
        ("ERR Error running script (call to f_0f): @user_script:1: @user_script: 1: -WRONGTYPE Operation", "WRONGTYPE"),
        ("ERR Error running script (call to f_0f): @user_script:1: WRONGTYPE Operation against a key", "WRONGTYPE"),
        ("ERR Error running script (call to f_0f): @user_script:1: ERR value is not an integer", "ERR"),
        ("ERR Error running script (call to f_0f): @user_script:1: user_script:1: oh: -x", "ERR"),
        ("ERR Error running script: -", "ERR"), ("ERR Error running script: -OOM", "OOM"),
        ("ERR The user executing the script can't run this command or subcommand script: 0f", "NOPERM"),
        (
            "ERR Error running script (call to f_0f): @user_script:1: @user_script: 1: The user executing the script "
                + "can't run this command or subcommand", "NOPERM"
        ),
        (
            "ERR ACL failure in script: User app has no permissions to run the 'set' command script: on @user_script:1.",
            "NOPERM"
        ),
        ("ERR value -OOM is not it", "ERR"), ("NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT"),
        ("BUSY Redis is busy running a script.", "BUSY"), ("", "ERR"), ("lower case", "ERR"),
    ])
    func `determines the kind of an error`(text: String, kind: String) {
        #expect(RedisErrorReply.kind(of: Array(text.utf8)) == kind)
    }

    @Test func `a script is identified by the SHA-1 of its text`() {
        let script = RedisScript("return 1")
        #expect(script.digest == Array("e0e1f9fabfc9d4800c877a703b823ac0578ff8db".utf8))
        #expect(script.source == Array("return 1".utf8))
    }
}
