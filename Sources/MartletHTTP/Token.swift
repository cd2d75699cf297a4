/// RFC 9110 §5.6.2 tokens, and the folding under which field names are compared.
///
/// Folding makes letters lower case and turns `_` and `.` into `-`: upstreams that put fields into environment
/// variables or request objects cannot tell these spellings apart, so neither may a list of reserved names.
enum Token {
    /// For every ASCII byte its folded form, or NUL where the byte is no token character.
    private static var folded: StaticString {
        """
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0!\0#$%&'\0\0*+\0--\0\
        0123456789\0\0\0\0\0\0\
        \0abcdefghijklmno\
        pqrstuvwxyz\0\0\0^-\
        `abcdefghijklmno\
        pqrstuvwxyz\0|\0~\0
        """
    }

    /// The folded form of a token character, or 0 for a byte that is none.
    @inline(__always)
    static func fold(_ byte: UInt8) -> UInt8 {
        guard byte < 0x80 else { return 0 }
        return unsafe folded.utf8Start[Int(byte)]
    }

    static func isMember(_ byte: UInt8) -> Bool { fold(byte) != 0 }
}
