import Foundation
import MartletCore
import MartletHTTP
import MartletTesting
import Testing

/// A path and its normal form; nil if it is rejected.
struct PathCase: CustomTestStringConvertible, Sendable {
    let path: String
    let normal: String?

    init(_ path: String, _ normal: String?) {
        self.path = path
        self.normal = normal
    }

    var testDescription: String { path.debugDescription }
}

@Suite struct PathNormalizerTests {
    static let clean = [
        "/", "/a", "/a/", "/a/b.c/d", "/a..b", "/...", "/.../x", "/..a", "/.a", "/a.", "/a..", "/a;b=c/d", "/;x", "/;",
        "/a;..", "/.well-known/jwks.json",
        "/a:b@c!$&'()*+,=~_-", "/a%20b", "/%C3%A9", "/%E6%97%A5", "/%F0%9F%90%A6", "/a%3Fb%23c", "/a%3Bb", "/a.;b",
        "/long/enough/for/the/block/search",
        "/long/enough/for/the/block/search/with/.hidden/file",
    ]
    static let rewritten = [
        PathCase("/%61", "/a"), PathCase("/%7Euser", "/~user"), PathCase("/%2D%2d%5F%5f", "/--__"),
        PathCase("/a%2Eb", "/a.b"),
        PathCase("/%c3%a9", "/%C3%A9"), PathCase("/a%3fb", "/a%3Fb"), PathCase("/%2Ehidden", "/.hidden"),
        PathCase("/%30%39%41%5A", "/09AZ"),
        // Characters beyond ASCII, and what looks like a dot or a percent sign in a text.
        PathCase("/é", "/%C3%A9"), PathCase("/a/文件…", "/a/%E6%96%87%E4%BB%B6%E2%80%A6"),
        PathCase("/℅", "/%E2%84%85"),
        PathCase("/100％的", "/100%EF%BC%85%E7%9A%84"), PathCase("/5％", "/5%EF%BC%85"), PathCase("/％4x", "/%EF%BC%854x"),
        PathCase("/％１x", "/%EF%BC%85%EF%BC%91x"), PathCase("/％/41", "/%EF%BC%85/41"),
        PathCase("/a/⒈", "/a/%E2%92%88"), PathCase("/\u{1F100}", "/%F0%9F%84%80"), PathCase("/\u{FE19}", "/%EF%B8%99"),
    ]
    static let refused = [
        "", "a", "*", "a/b", "//", "//a", "/a//b", "/a//", "/.", "/..", "/./a", "/../a", "/a/.", "/a/..", "/a/./b",
        "/a/../b",
        "/%2e", "/%2e%2e/a", "/.%2E/a", "/%2E./a", "/a/%2e%2E", "/a/..;x/b", "/a/.;/b", "/a/..;", "/%2e%2e;x",
        "/..%3bx", "/.%3B",
        "/a\\b", "/..\\a", "/a%5Cb", "/a%5cb", "/a%2Fb", "/a%2fb", "/%2f", "/a%25b", "/%252e%252e/", "/%", "/%4",
        "/%zz", "/%4g", "/a%", "/%%41",
        "/%00", "/%0a", "/%0D", "/%1f", "/%7f", "/a\u{0}", "/a b", "/a\tb", "/a\u{7F}", "/a#b", "/a?b",
        "/%80", "/%BF", "/%C0%AF", "/%C1%81", "/%C3", "/%C3/", "/%C3a", "/%C3%41", "/%C3%C3", "/%E0%80%AF",
        "/%E0%9F%BF", "/%ED%A0%80", "/%F0%80%80%AF",
        "/%F4%90%80%80", "/%F5%80%80%80", "/%FF", "/%E6%97", "/%F0%9F%90", "/long/enough/for/the/block/search//x",
        "/long/enough/for/the/block/search/../x",
        "/long/enough/for/the/block/sear\\ch", "/%EF%BC%8F", "/a%EF%BC%8Eb", "/%E2%80%A4%E2%80%A4/a", "/%EF%BC%BC",
        "/%EF%BC%8541", "/%EF%BC%85%34%31", "/\u{FF05}41", "/\u{FE6A}4F", "/\u{FF05}\u{FF14}1", "/\u{FF05}4\u{2460}",
        "/%EF%BC%85\u{FF05}41", "/\u{FF05}\u{33C8}", "/\u{FF0F}", "/\u{2025}", "/\u{FE30}/a", "/\u{FE52}",
    ]
    /// With both options that preserve encoded characters.
    static let kept = [
        PathCase("/a%2Fb", "/a%2Fb"), PathCase("/a%2fb", "/a%2Fb"), PathCase("/%252e%252e/", "/%252e%252e/"),
        PathCase("/a%25", "/a%25"),
        PathCase("/a%2F%2Fb", "/a%2F%2Fb"), PathCase("/%252F", "/%252F"), PathCase("/a%2F..%2Fb", nil),
        PathCase("/..%2Fb", nil), PathCase("/a%2f%2e", nil),
        PathCase("/a%2F/b", nil), PathCase("/a%2f..;x", nil), PathCase("/a%5Cb", nil), PathCase("/a%2", nil),
    ]

    /// With slashes merged.
    static let merged = [
        PathCase("//", "/"), PathCase("//a", "/a"), PathCase("/a//b", "/a/b"), PathCase("/a///b////", "/a/b/"),
        PathCase("///%61//", "/a/"), PathCase("/a//..", nil), PathCase("//./a", nil), PathCase("/..//a", nil),
        PathCase("/a%2F/b", nil), PathCase("/a//%2F", nil), PathCase("/a\\/b", nil), PathCase("/a/b", "/a/b"),
    ]

    @Test(arguments: merged)
    func `merges slashes if configured`(_ path: PathCase) {
        var out = ByteBuffer()
        let bytes = Array(path.path.utf8)
        var normal: [UInt8]?
        switch PathNormalizer.normalize(
            bytes.span, keepsEncodedSlash: false, keepsEncodedPercent: false, mergesSlashes: true, into: &out)
        {
        case .unchanged: normal = bytes
        case .rewritten: normal = out.array
        case .failure(let failure): #expect(failure == .pathAmbiguous)
        }
        #expect(normal == path.normal.map { Array($0.utf8) })
    }

    /// Unicode's own normalization, as Foundation has it, says of every character what it becomes (UAX #15, NFKC); the
    /// list was made with Python's `unicodedata` (14.0) in the same way.
    @Test func `rejects every character that normalizes to one with a meaning in a path`() {
        var wrong: [UInt32] = []
        for value in UInt32(0x80)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let folded = String(scalar).precomposedStringWithCompatibilityMapping
            let isAmbiguous = [".", "..", "/", "\\"].contains(folded)
            if isAmbiguous != CompatibilityForms.areAmbiguous([scalar]) { wrong.append(value) }
            if folded == "%", !CompatibilityForms.areAmbiguous([scalar, "4", "f"]) { wrong.append(value) }
            if CompatibilityForms.areAmbiguous([scalar, "x"]) != isAmbiguous { wrong.append(value) }
        }
        #expect(wrong == [])
    }

    /// A full-width percent sign before any two characters of which an upstream that normalizes makes an escape.
    @Test func `rejects every escape that only normalization shows`() {
        var wrong: [UInt32] = []
        for value in UInt32(0x80)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let folded = String(scalar).precomposedStringWithCompatibilityMapping
            let digits = folded.utf8.prefix { $0 < 0x80 && Character(UnicodeScalar($0)).isHexDigit }.prefix(2).count
            if digits == 2, !CompatibilityForms.areAmbiguous(["\u{FF05}", scalar]) { wrong.append(value) }
            guard digits == 1, folded.utf8.count == 1 else { continue }
            for text in [["\u{FF05}", scalar, "a"], ["\u{FF05}", "a", scalar]] as [[Unicode.Scalar]]
            where !CompatibilityForms.areAmbiguous(text) { wrong.append(value) }
        }
        #expect(wrong == [])
    }

    /// The normal form, or nil if the path is rejected.
    static func normalize(_ path: [UInt8], keeping: Bool = false) -> [UInt8]? {
        var out = ByteBuffer()
        out.append("before")
        switch PathNormalizer.normalize(path.span, keepsEncodedSlash: keeping, keepsEncodedPercent: keeping, into: &out)
        {
        case .unchanged:
            #expect(out.array == Array("before".utf8))
            return path
        case .rewritten: return out.array
        case .failure(let failure):
            #expect(failure.code == "request.path_ambiguous")
            #expect(out.array == Array("before".utf8))
            return nil
        }
    }

    @Test(arguments: clean)
    func `leaves a clean path alone`(_ path: String) {
        #expect(PathNormalizerTests.normalize(Array(path.utf8)) == Array(path.utf8))
    }

    @Test(arguments: rewritten)
    func `decodes unreserved characters and writes digits upper case`(_ path: PathCase) {
        #expect(PathNormalizerTests.normalize(Array(path.path.utf8)) == path.normal.map { Array($0.utf8) })
    }

    @Test(arguments: refused)
    func `rejects an ambiguous path`(_ path: String) {
        #expect(PathNormalizerTests.normalize(Array(path.utf8)) == nil)
    }

    @Test(arguments: kept)
    func `preserves encoded slashes and percent signs if configured`(_ path: PathCase) {
        #expect(
            PathNormalizerTests.normalize(Array(path.path.utf8), keeping: true) == path.normal.map { Array($0.utf8) })
    }

    @Test func `each of the two options works alone`() {
        var out = ByteBuffer()
        let slash = Array("/a%2Fb".utf8)
        let percent = Array("/a%25b".utf8)
        let refused = PathOutcome.failure(.pathAmbiguous)
        #expect(
            PathNormalizer.normalize(slash.span, keepsEncodedSlash: false, keepsEncodedPercent: true, into: &out)
                == refused)
        #expect(
            PathNormalizer.normalize(percent.span, keepsEncodedSlash: true, keepsEncodedPercent: false, into: &out)
                == refused)
        #expect(
            PathNormalizer.normalize(slash.span, keepsEncodedSlash: true, keepsEncodedPercent: false, into: &out)
                == .unchanged)
        #expect(
            PathNormalizer.normalize(percent.span, keepsEncodedSlash: false, keepsEncodedPercent: true, into: &out)
                == .unchanged)
    }

    @Test func `has one normal form: normalizing it again changes nothing`() {
        var random = SeededGenerator(seed: 11)
        let pieces = [
            "/", "a", ".", "%", "2", "e", "E", "F", "f", ";", "%2e", "%2F", "%25", "%41", "%c3", "%a9", "%C3%A9", "%5c",
            "long-enough-a-piece", "x/",
        ]
        var accepted = 0
        for round in 0..<20_000 {
            let text =
                "/"
                + (0..<Int.random(in: 0...8, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            let keeping = round % 2 == 0
            guard let normal = PathNormalizerTests.normalize(Array(text.utf8), keeping: keeping) else { continue }
            accepted += 1
            #expect(PathNormalizerTests.normalize(normal, keeping: keeping) == normal)
            let segments = String(decoding: normal, as: UTF8.self).split(
                separator: "/", omittingEmptySubsequences: false)
            #expect(
                !segments.contains(".") && !segments.contains("..") && !segments.dropFirst().dropLast().contains(""))
        }
        #expect(accepted > 1000)
    }
}
