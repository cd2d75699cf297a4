// The part of Apple's framework that the guides use, for Linux: the sheet asks the simulated Apple for a token, and a web
// session the test's browser.
@_exported public import Foundation
@_exported public import FoundationNetworking

public enum Settings {
    public static let simulator = ProcessInfo.processInfo.environment["SIMULATOR"] ?? ""
    public static let browser = ProcessInfo.processInfo.environment["BROWSER"] ?? ""

    static func post(_ address: String, _ body: Data) async throws -> Data {
        guard let url = URL(string: address) else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = body
        let (data, response) = try await URLSession.shared.data(for: request)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return data
    }
}

public class ASAuthorizationRequest: NSObject {}

public final class ASAuthorizationAppleIDRequest: ASAuthorizationRequest {
    public var requestedScopes: [ASAuthorization.Scope]?
    public var nonce: String?
    public var state: String?
}

public final class ASAuthorizationAppleIDProvider {
    public init() {}
    public func createRequest() -> ASAuthorizationAppleIDRequest { ASAuthorizationAppleIDRequest() }
}

public protocol ASAuthorizationCredential {}

public final class ASAuthorizationAppleIDCredential: ASAuthorizationCredential {
    public let user = "me"
    public let identityToken: Data?
    public let authorizationCode: Data?
    public let fullName: PersonNameComponents?

    init(identityToken: String, authorizationCode: String?) {
        self.identityToken = Data(identityToken.utf8)
        self.authorizationCode = authorizationCode.map { Data($0.utf8) }
        var name = PersonNameComponents()
        name.givenName = "Ada"
        fullName = name
    }
}

public final class ASAuthorization: NSObject {
    public struct Scope: Sendable {
        public static let fullName = Scope()
        public static let email = Scope()
    }

    public let credential: any ASAuthorizationCredential
    init(_ credential: any ASAuthorizationCredential) { self.credential = credential }
}

@MainActor public protocol ASAuthorizationControllerDelegate: AnyObject {
    func authorizationController(
        controller: ASAuthorizationController, didCompleteWithAuthorization authorization: ASAuthorization)
    func authorizationController(controller: ASAuthorizationController, didCompleteWithError error: any Error)
}

@MainActor public final class ASAuthorizationController {
    public weak var delegate: (any ASAuthorizationControllerDelegate)?
    private let requests: [ASAuthorizationRequest]

    public init(authorizationRequests: [ASAuthorizationRequest]) { requests = authorizationRequests }

    public func performRequests() {
        let nonce = (requests.first as? ASAuthorizationAppleIDRequest)?.nonce ?? ""
        Task {
            do {
                delegate?.authorizationController(
                    controller: self, didCompleteWithAuthorization: ASAuthorization(try await Self.credential(nonce)))
            } catch {
                delegate?.authorizationController(controller: self, didCompleteWithError: error)
            }
        }
    }

    private struct Issued: Decodable {
        let identity_token: String
        let authorization_code: String?
    }

    private static func credential(_ nonce: String) async throws -> ASAuthorizationAppleIDCredential {
        let wanted = ["audience": "com.example.app", "subject": "me", "email": "me@example.com", "nonce": nonce]
        let data = try await Settings.post("\(Settings.simulator)/simulator/token", try JSONEncoder().encode(wanted))
        let issued = try JSONDecoder().decode(Issued.self, from: data)
        return ASAuthorizationAppleIDCredential(
            identityToken: issued.identity_token, authorizationCode: issued.authorization_code)
    }
}

@MainActor public class ASPresentationAnchor {
    public init() {}
}

@MainActor public protocol ASWebAuthenticationPresentationContextProviding: AnyObject {
    func presentationAnchor(for session: ASWebAuthenticationSession) -> ASPresentationAnchor
}

@MainActor public final class ASWebAuthenticationSession {
    public typealias CompletionHandler = (URL?, (any Error)?) -> Void

    public weak var presentationContextProvider: (any ASWebAuthenticationPresentationContextProviding)?
    private let url: URL
    private let scheme: String?
    private let completed: CompletionHandler

    public init(url: URL, callbackURLScheme: String?, completionHandler: @escaping CompletionHandler) {
        (self.url, scheme, completed) = (url, callbackURLScheme, completionHandler)
    }

    @discardableResult public func start() -> Bool {
        guard presentationContextProvider?.presentationAnchor(for: self) != nil else { return false }
        Task {
            do {
                let reached = try await Settings.post(Settings.browser, Data(url.absoluteString.utf8))
                let back = URL(string: String(decoding: reached, as: UTF8.self))
                completed(back?.scheme == scheme ? back : nil, back?.scheme == scheme ? nil : URLError(.badURL))
            } catch {
                completed(nil, error)
            }
        }
        return true
    }
}
