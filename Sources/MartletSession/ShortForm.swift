private import CZlib
internal import MartletCore

/// Values of a session in as few bytes as possible: compressed (DEFLATE, RFC 1951), with a dictionary of what such values
/// mostly consist of. A record of 400 bytes alone would hardly become shorter; with a dictionary it has 120.
///
/// A dictionary never changes: what was compressed with another one cannot be read. A new one needs a new label of the
/// sealed value.
struct ShortForm: Sendable {
    private let dictionary: [UInt8]
    /// The maximum length of the bytes themselves.
    private let limit: Int

    private init(limit: Int, _ dictionary: String) {
        (self.limit, self.dictionary) = (limit, Array(dictionary.utf8))
    }

    /// A window of 4 KiB, raw: the seal has a checksum.
    private static let window: Int32 = -12

    /// The short form; `nil` for more bytes than can be read again.
    func pack(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count <= limit, let length = UInt32(exactly: bytes.count) else { return nil }
        var stream = unsafe z_stream()
        guard unsafe martlet_deflate_begin(&stream, Z_BEST_COMPRESSION, Self.window, 5) == Z_OK else { return nil }
        defer { unsafe deflateEnd(&stream) }
        let bound = unsafe deflateBound(&stream, uLong(length))
        var packed = [UInt8](repeating: 0, count: Int(clamping: bound))
        let isDone = unsafe run(&stream, bytes, into: &packed, dictionary: deflateSetDictionary) {
            unsafe deflate(&$0, Z_FINISH)
        }
        guard isDone else { return nil }
        packed.removeLast(Int(clamping: unsafe stream.avail_out))
        return packed
    }

    /// The bytes of a short form; `nil` if it is none, or has too many.
    func unpack(_ packed: Secret) -> Secret? {
        var stream = unsafe z_stream()
        guard unsafe martlet_inflate_begin(&stream, Self.window) == Z_OK else { return nil }
        defer { unsafe inflateEnd(&stream) }
        return packed.withBytes { packed in
            // Most have less than eight times as many bytes.
            for size in [min(packed.count &* 8 &+ 256, limit), limit] {
                var bytes = [UInt8](repeating: 0, count: size)
                let isDone = unsafe run(&stream, packed, into: &bytes, dictionary: inflateSetDictionary) {
                    unsafe inflate(&$0, Z_FINISH)
                }
                if isDone, unsafe stream.avail_in == 0 {
                    bytes.removeLast(Int(clamping: unsafe stream.avail_out))
                    return Secret(bytes)
                }
                guard unsafe stream.avail_out == 0, size < limit, unsafe inflateReset(&stream) == Z_OK else { break }
            }
            return nil
        }
    }

    /// Passes all bytes through a stream.
    /// - Returns: whether it has ended within the output.
    private func run(
        _ stream: inout z_stream, _ input: [UInt8], into output: inout [UInt8],
        dictionary set: (z_streamp?, UnsafePointer<Bytef>?, uInt) -> Int32, _ body: (inout z_stream) -> Int32
    ) -> Bool {
        let isSet = unsafe dictionary.withUnsafeBufferPointer { dictionary in
            unsafe set(&stream, dictionary.baseAddress, uInt(clamping: dictionary.count)) == Z_OK
        }
        guard isSet else { return false }
        return unsafe input.withUnsafeBufferPointer { input in
            unsafe output.withUnsafeMutableBufferPointer { output in
                unsafe stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                unsafe stream.avail_in = uInt(clamping: input.count)
                unsafe stream.next_out = output.baseAddress
                unsafe stream.avail_out = uInt(clamping: output.count)
                return unsafe body(&stream) == Z_STREAM_END
            }
        }
    }
}

/// What is most frequent comes last.
extension ShortForm {
    static let record = ShortForm(
        limit: SessionRecord.maximumBytes,
        """
        "phone_number":"+86"phone_number_verified":true,"zoneinfo":"Europe/"locale":"zh_CN""locale":"en-US"\
        "updated_at":17"website":"https://www."groups":["admin","user"]"roles":["tenant":"scope":"openid profile email"\
        "gender":"birthdate":"19"hd":"at_hash":"azp":"aud":"amr":["pwd"]"acr":"nonce":"nonce_supported":true\
        "picture":"https://lh3.googleusercontent.com/a/"middle_name":"nickname":"preferred_username":"\
        "given_name":"family_name":"session_key":"app_id":"wx"openid":"o"unionid":"o"jkt":"\
        "provider":"wechat","iss":"https://open.weixin.qq.com"https://login.microsoftonline.com//v2.0"\
        "provider":"google","iss":"https://accounts.google.com""email":"@gmail.com"@qq.com"@outlook.com"\
        "provider":"password","iss":"martlet""transferred":false"name":"\
        {"v":2,"sub":"usr_","provider":"apple","provider_sub":"000.0123456789abcdef.",\
        "iss":"https://appleid.apple.com","claims":{"email":"@privaterelay.appleid.com","email_verified":true,\
        "is_private_email":true,"real_user_status":2},"created":17,"lifetime":5184000000,"age":1}\
        {"v":1,"sub":"usr_
        """)

    static let listing = ShortForm(
        limit: 64 * 1024,
        """
        curl/8.MicroMessenger/8.0. NetType/WIFI Language/zh_CN HarmonyOS Windows NT 10.0; Win64; x64) Gecko/20100101 \
        Firefox/13 Edg/13Dalvik/2.1.0 (Linux; U; Android 15; SM-SPixel 9 Build/okhttp/4.12.0 Dart/3. (dart:io)\
        MacBook ProiPad’s iPhone (iPhone; CPU iPhone OS 18_ like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
        Version/18. Mobile/15E148 Safari/604.1(Macintosh; Intel Mac OS X 10_15_7) \
        Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/13.0.0.0 Mobile Safari/537.36\
        /1. CFNetwork/3826.500.111.2.2 Darwin/24.4.0 CFNetwork/1494.0.7 Darwin/23.4.0googlewechatpasswordapple
        """)

    static let claims = ShortForm(
        limit: 256 * 1024,
        """
        "phone_number":"+86"locale":"zh-CN""tenant":"plan":"pro"groups":["roles":["user","admin"]},"wechat":{\
        "name":"email_verified":true,"email":"@{"account":{"name":"{"apple":{"email":"@privaterelay.appleid.com",\
        "email_verified":true,"is_private_email":true,"real_user_status":2}},"disabled":true}\
        {"account":{},"identities":{"apple":{}}{"account":{},"identities":{}}
        """)
}
