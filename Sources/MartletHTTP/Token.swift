/// RFC 9110 §5.6.2 tokens.
enum Token {
    /// For every ASCII byte itself, or NUL where the byte is no token character.
    private static var members: StaticString {
        """
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0!\0#$%&'\0\0*+\0-.\0\
        0123456789\0\0\0\0\0\0\
        \0ABCDEFGHIJKLMNO\
        PQRSTUVWXYZ\0\0\0^_\
        `abcdefghijklmno\
        pqrstuvwxyz\0|\0~\0
        """
    }

    @inline(__always)
    static func isMember(_ byte: UInt8) -> Bool {
        guard byte < 0x80 else { return false }
        return unsafe members.utf8Start[Int(byte)] != 0
    }
}
