import MartletCore
import MartletJOSE
import MartletJSON
import Testing

@Suite struct CompactJWSTests {
    static let header = Base64URL.encode(Array(#"{"alg":"RS256","kid":"k"}"#.utf8))
    static let payload = Base64URL.encode(Array(#"{"sub":"a"}"#.utf8))
    static let good = "\(header).\(payload).AAAA"

    static func reason(_ token: String) -> JOSEError.Reason? {
        do { _ = try CompactJWS(Array(token.utf8)) } catch { return error.reason }
        return nil
    }

    @Test func `parses a token and retains the signed bytes`() throws {
        let jws = try CompactJWS(Array(Self.good.utf8))
        #expect(jws.header.fields["alg"] == "RS256")
        #expect(jws.payload["sub"] == "a")
        #expect(jws.signature == [0, 0, 0])
        #expect(jws.signingInput == Array("\(Self.header).\(Self.payload)".utf8))
        #expect(try jws.keyID().text == "k")
        #expect(try jws.algorithm(among: [.rs256]) == .rs256)
        #expect(throws: JOSEError(.algorithmNotAllowed, "")) { try jws.algorithm(among: [.es256]) }
    }

    @Test func `a cached header equals a parsed one`() throws {
        let headers = JWSHeaderCache()
        let texts = [
            #"{"alg":"RS256","kid":"k"}"#, #"{"alg":"RS256","kid":"l"}"#, #"{"alg":"ES256","kid":"k"}"#,
            #"{"alg":"none!","kid":"k"}"#, #"{"alg":"RS256","kid":" "}"#, #"{"alg":"RS256","kid":"k","crit":[]}"#,
            #"{"alg":"RS256","kid":"k","typ":"JWT"}"#, #"{"alg":"RS256","kid":"k","typ":"JWE"}"#, "{}",
        ]
        for text in texts + texts.reversed() + texts.flatMap({ [$0, $0] }) {
            let token = Array("\(Base64URL.encode(Array(text.utf8))).\(Self.payload).AAAA".utf8)
            let (read, known) = (try CompactJWS(token), try CompactJWS(token, headers: headers))
            #expect(known.header.fields == read.header.fields)
            #expect((try? known.keyID()) == (try? read.keyID()))
            for algorithm in SignatureAlgorithm.allCases {
                #expect((try? known.algorithm(among: [algorithm])) == (try? read.algorithm(among: [algorithm])))
            }
            let isGood = (try? read.checkHeaderFields()) != nil
            #expect(((try? known.checkHeaderFields()) != nil) == isGood && isGood == !text.contains(/crit|JWE/))
        }
        #expect(throws: JOSEError(.malformed, "")) {
            try CompactJWS(Array("e30x.\(Self.payload).AAAA".utf8), headers: headers)
        }
    }

    @Test func `rejects every truncation of a token`() {
        for length in 1..<Self.good.utf8.count - 3 {
            #expect(Self.reason(String(Self.good.prefix(length))) == .malformed)
        }
        #expect(Self.reason("") == .tokenMissing)
    }

    @Test func `rejects any invalid byte at any position`() {
        let bytes = Array(Self.good.utf8)
        for index in bytes.indices where bytes[index] != UInt8(ascii: ".") {
            for foreign: UInt8 in [0x00, 0x0A, 0x20, 0x2B, 0x2F, 0x3D, 0x80, 0xFF] {
                var changed = bytes
                changed[index] = foreign
                #expect(throws: JOSEError(.malformed, "")) { try CompactJWS(changed) }
            }
        }
    }

    @Test func `limits the token, the header and nesting`() {
        let edge = 16_384 - Self.header.utf8.count - Self.payload.utf8.count - 2
        #expect(Self.reason("\(Self.header).\(Self.payload).\(String(repeating: "A", count: edge / 4 * 4))") == nil)
        #expect(
            Self.reason("\(Self.header).\(Self.payload).\(String(repeating: "A", count: edge + 1))") == .tokenTooLarge)
        let token = Array("\(Self.header).\(Self.payload).AAAA".utf8)
        #expect((try? CompactJWS(token, maximumLength: token.count)) != nil)
        #expect(throws: JOSEError(.tokenTooLarge, "")) { try CompactJWS(token, maximumLength: token.count - 1) }
        func header(_ bytes: Int) -> String {
            Base64URL.encode(Array("{\"x\":\"\(String(repeating: "x", count: bytes - 8))\"}".utf8))
        }
        #expect(Self.reason("\(header(8192)).\(Self.payload).AAAA") == nil)
        #expect(Self.reason("\(header(8193)).\(Self.payload).AAAA") == .malformed)
        func nested(_ depth: Int) -> String {
            let arrays = depth - 1
            return Base64URL.encode(
                Array("{\"x\":\(String(repeating: "[", count: arrays))\(String(repeating: "]", count: arrays))}".utf8))
        }
        #expect(Self.reason("\(nested(4)).\(nested(8)).AAAA") == (nil as JOSEError.Reason?))
        #expect(Self.reason("\(nested(5)).\(Self.payload).AAAA") == .malformed)
        #expect(Self.reason("\(Self.header).\(nested(9)).AAAA") == .malformed)
    }

    @Test(arguments: [
        "a", "A-_9", "a/b", "k+/9=", "bilbo.baggins@hobbiton.example", "https://a.example/#1",
        String(repeating: "k", count: 128),
    ])
    func `accepts key IDs`(name: String) { #expect(KeyID(name)?.text == name) }

    @Test(arguments: [
        "", " ", "a b", "a\"b", "a\\b", "a\n", "a\u{7F}", "é", "a\u{0}", "\u{FF41}", String(repeating: "k", count: 129),
    ])
    func `rejects invalid key IDs`(name: String) { #expect(KeyID(name) == nil) }
}
