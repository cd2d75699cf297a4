/// The sentences and names of pages. Each language has all of them, with the same values in braces.
package enum WordKey: String, Sendable, CaseIterable {
    // Pages for signing in.
    case signInTitle, signIn, signInWithApple, signInWithWeChat, signInWith, or, username, password, noMethod
    case registerQuestion, registerLink, registerTitle, register, signInQuestion, passwordHint
    // Pages of links in mails.
    case email, displayName, registerMailHint, forgotLink, forgotText, forgotSend, resetTitle, resetText
    case verifyTitle, verifyText, verifySend, mailSentTitle, mailSentText
    case addressInvalid, addressAsName, nameInvalid, linkInvalid, registeredNotice, passwordResetNotice
    // Messages.
    case wrongPassword, throttled, cookiesNeeded, cancelled, formExpired, signInFailed, notAllowed
    case unavailable, sessionEnded, confirmIdentity, accountDeleted, usernameTaken, usernameInvalid
    case passwordTooShort, passwordTooLong, passwordTooWeak
    // Pages that show one message.
    case failedTitle, failedText, crossSiteTitle, crossSiteText, notAllowedTitle, notAllowedText
    case notFoundTitle, notFoundText, invalidTitle, invalidText, throttledTitle, throttledText
    case unavailableTitle, unavailableText, internalTitle, internalText, cookiesTitle, expiredTitle
    case expiredText, requestID, backToSignIn, signedOutTitle, signedOutText, signedOutEverywhere, continueTitle,
        continueText, continueLink, signInAgain, otherAccount, confirmTitle
    // The page of the account.
    case accountTitle, signedInAs, signOut, signOutEverywhere, identitiesTitle, identitiesText, link
    case linkNamed, unlink, unlinkNamed, onlyIdentity, linkedOn, lastUsed, identityRevoked, notConnected
    case sessionsTitle, sessionsText, thisDevice, endSessionNamed, unknownDevice, deviceOn, signedInOn
    case passwordTitle, currentPassword, newPassword, changePassword, changePasswordText, wrongCurrentPassword
    case deleteTitle, deleteText, deleteGraceText, deleteConfirm, deleteAccount, deleteNotConfirmed
    case deleteSignIn, linked, unlinked, identityTaken, alreadyLinked, lastIdentity, linkCancelled
    case sessionEndedNotice, passwordChanged, actionFailed
    // Names.
    case nameApple, nameWeChat, navigationLanguage, navigationLinks
    // Times.
    case secondOne, secondOther, minuteOne, minuteOther, hourOne, hourOther, dayOne, dayOther, justNow, ago
    case date, months
}
