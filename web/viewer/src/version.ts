/** The version in package.json. Workers compare it, because a copied script may be outdated. */
export const VERSION = "0.1.0";
