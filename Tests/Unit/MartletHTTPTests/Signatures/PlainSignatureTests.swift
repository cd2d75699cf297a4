import MartletCore
import Testing

@testable import MartletHTTP

/// Signatures in the plain form are read without the parser of structured fields: both must say the same.
@Suite struct PlainSignatureTests {
    /// Everything about a signature, with the base of a request in which all components are covered.
    private static func description(_ signature: MessageSignature) -> String {
        let base: String
        do throws(MessageSignatureError) {
            base = String(decoding: try signature.base(of: SignedRequests.rfc), as: UTF8.self)
        } catch { base = error.code.rawValue }
        return """
            \(signature.components) \(signature.keyID) \(signature.nonce ?? "-") \(signature.tag ?? "-") \
            \(signature.algorithm ?? "-") \(signature.created.map(String.init) ?? "-") \
            \(signature.expires.map(String.init) ?? "-") \(signature.signature)
            \(base)
            """
    }

    private static func parsed(_ input: [UInt8], _ signature: [UInt8]) -> String? {
        (try? MessageSignature(parsing: input, signature)).map(description)
    }

    private static func plain(_ input: [UInt8], _ signature: [UInt8]) -> String? {
        MessageSignature(plain: input, signature).map(description)
    }

    private static let usual = "sig=(\"@method\" \"@authority\" \"@path\" \"@query\" \"content-type\")"
    private static let parameters =
        ";created=1618884473;keyid=\"k\";alg=\"hmac-sha256\";nonce=\"n 1\";tag=\"t\";expires=0"
    private static let value = "sig=:k0MMYA8pO+Rm/w==:"

    @Test(arguments: [
        usual + parameters, "sig=();keyid=\"k\"", "a-1=(\"x\");keyid=\"k\"",
        "sig=(\"x\");created=999999999999999;keyid=\"~\"",
    ])
    func `of the plain form are read as they are parsed`(input: String) throws {
        let label = try #require(input.split(separator: "=").first)
        let (input, signature) = (Array(input.utf8), Array("\(label)=:AAAA:".utf8))
        let plain = Self.plain(input, signature)
        #expect(plain != nil && plain == Self.parsed(input, signature))
    }

    @Test(arguments: [
        "", "sig", "sig=", "sig=1", " sig=();keyid=\"k\"", "sig=();keyid=\"k\" ", "sig=( );keyid=\"k\"",
        "sig=();keyid=k",
        "sig=();keyid=\"\"", "sig=();keyid=\"\\\"\"", "sig=();created=01;keyid=\"k\"", "sig=();created=-1;keyid=\"k\"",
        "sig=();created=1.0;keyid=\"k\"", "sig=();created=9999999999999999;keyid=\"k\"", "sig=();created=;keyid=\"k\"",
        "sig=();keyid=\"k\";keyid=\"k\"", "sig=();keyid=\"k\";x", "sig=();keyid=\"k\";tag", "sig=();created=1",
        "sig=(\"x\" );keyid=\"k\"", "sig=(\"x\"  \"y\");keyid=\"k\"", "sig=(\"x\"\"y\");keyid=\"k\"",
        "sig=(\"x\" \"x\");keyid=\"k\"", "sig=(\"x\";bs);keyid=\"k\"", "sig=(\"X\");keyid=\"k\"", "sig=(x);keyid=\"k\"",
        "sig=(\"@nothing\");keyid=\"k\"", "sig=(\"x\";keyid=\"k\"", "sig=();keyid=\"k\", b=();keyid=\"k\"",
        "*=();keyid=\"k\"", "Sig=();keyid=\"k\"", "other=();keyid=\"k\"", "sig=(\"é\");keyid=\"k\"",
        "sig=();keyid=\"\(String(repeating: "k", count: 257))\"",
        "sig=(\((0..<33).map { "\"x\($0)\"" }.joined(separator: " ")));keyid=\"k\"",
    ])
    func `of another form are left to the parser`(input: String) {
        #expect(Self.plain(Array(input.utf8), Array("sig=:AAAA:".utf8)) == nil)
    }

    @Test(arguments: [
        "", "sig", "sig=:AAA:", "sig=:A===:", "sig=:====:", "sig=:AAAA", "sig=:AA-_:", "sig=:AAAA:;x", "b=:AAAA:",
    ])
    func `of another value are left to the parser`(signature: String) {
        #expect(Self.plain(Array((Self.usual + Self.parameters).utf8), Array(signature.utf8)) == nil)
    }

    /// Each byte is left out, doubled and replaced: whatever becomes of it is read as it is parsed, or left to the parser.
    @Test func `with any byte changed are read as they are parsed`() {
        let (input, signature) = (Array((Self.usual + Self.parameters).utf8), Array(Self.value.utf8))
        let bytes = Array("\"\\ =;:,()?@-_.*0aA\t".utf8) + [0, 0x7F, 0x80]
        var count = 0
        func check(_ input: [UInt8], _ signature: [UInt8]) {
            guard let plain = Self.plain(input, signature) else { return }
            count += 1
            #expect(plain == Self.parsed(input, signature), "\(String(decoding: input, as: UTF8.self))")
        }
        func changes(of text: [UInt8]) -> [[UInt8]] {
            text.indices.flatMap { index in
                ([[], [text[index], text[index]]] + bytes.map { [$0] }).map {
                    text[..<index] + $0 + text[(index + 1)...]
                }
            }
        }
        check(input, signature)
        for changed in changes(of: input) { check(changed, signature) }
        for changed in changes(of: signature) { check(input, changed) }
        #expect(count > 100)
    }
}
