import MartletCore
import Testing

@Suite struct `Form decoder` {
    private static func pairs(_ text: String) throws -> [String] {
        var decoder = FormDecoder(Array(text.utf8))
        return try decoder.pairs().map { pair in
            "\(String(decoding: pair.name, as: UTF8.self))=\(pair.value.withBytes { String(decoding: $0, as: UTF8.self) })"
        }
    }

    @Test func `pairs in order, with escapes decoded`() throws {
        let rows = [
            ("", []), ("&&", []), ("a=1&b=2", ["a=1", "b=2"]), ("a=1&a=2", ["a=1", "a=2"]), ("a", ["a="]),
            ("=1", ["=1"]), ("a=b=c", ["a=b=c"]), ("a+b=c+d", ["a b=c d"]), ("a=%C3%A9%26%3d", ["a=é&="]),
            ("a=%00", ["a=\0"]), ("&a=1&", ["a=1"]),
        ]
        for (text, expected) in rows { #expect(try Self.pairs(text) == expected, "\(text)") }
    }

    @Test(arguments: [
        "a=%", "a=%4", "a=%zz", "%=1", "a=%ff", "a=%c3", "%C3%28=1", "a=\n", "a=\u{7f}", "a=%-1", "a=1&b=%+1",
    ])
    func `invalid forms are rejected`(_ text: String) {
        #expect(throws: FormDecoder.FormError.self) { try Self.pairs(text) }
    }
}
